import type { Choices } from '@tutti/command-line/program'
import type { CompletedCommand, CompletedFlag } from './completions.ts'

/** Renders the completion script for zsh, for a file `_tutti` in a folder of `fpath`, or for `source`. */
export function renderZsh(commands: readonly CompletedCommand[]): string {
  const described = commands.map(
    ({ name, description }) => `    ${quote(`${name}:${description}`)}\n`,
  )
  return `#compdef tutti
# zsh completion of tutti, made by \`tutti completion zsh\`.

_tutti_commands() {
  local -a commands
  commands=(
${described.join('')}  )
  _describe -t commands command commands
}

# $words begins with the command.
_tutti_models() {
  local -a names
  names=(\${(f)"$(command tutti completion models -- "\${(@Q)words[2,CURRENT-1]}" 2>/dev/null)"})
  compadd "$@" -a names
}

# The path of NAME=PATH and NAME=@PATH too.
_tutti_path() {
  compset -P '*=(@|)'
  _files "$@"
}

_tutti() {
  local curcontext=$curcontext state state_descr line
  typeset -A opt_args
  _arguments -C '(- *)'{-h,--help}'[Print the commands]' '(- *)--version[Print the version]' \\
    '1:command:_tutti_commands' '*::argument:->arguments' && return
  [[ $state == arguments ]] || return 1
  case $words[1] in
${commands.map(renderCommand).join('')}    *) return 1 ;;
  esac
}

if [[ $funcstack[1] == _tutti ]]; then _tutti "$@"; else compdef _tutti tutti; fi
`
}

function renderCommand({ name, flags, operands }: CompletedCommand): string {
  const specs = [
    ...flags.map(renderFlag),
    ...operands.map((choices, i) => quote(`${i + 1}:operand:${toAction(choices)}`)),
  ]
  return `    ${name})\n      _arguments -S ${specs.map((spec) => `\\\n        ${spec}`).join(' ')}\n      ;;\n`
}

function renderFlag({ name, description, choices, isSwitch, isRepeatable }: CompletedFlag): string {
  const text = description.replace(/[\\[\]:]/g, '\\$&')
  // The value of a switch stands behind =, or is left out.
  const equals = isSwitch ? '=-' : '='
  const colons = isSwitch ? '::' : ':'
  const value = `${colons}value:${toAction(choices)}`
  return quote(
    `${isRepeatable ? '*' : ''}${name}${name.startsWith('--') ? equals : ''}[${text}]${value}`,
  )
}

function toAction(choices: Choices): string {
  if (choices === 'file') return '_tutti_path'
  if (choices === 'folder') return '_tutti_path -/'
  if (choices === 'model') return '_tutti_models'
  // A space: there is a value, and nothing to offer.
  return choices.length === 0 ? ' ' : `(${choices.join(' ')})`
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
