import type { Choices } from '@tutti/command-line/program'
import type { CompletedCommand, CompletedFlag } from './completions.ts'

/** Whether no command has come yet. */
const FIRST = "'test (count (commandline -opc)) -eq 1'"

/** Renders the completion script for fish, for `~/.config/fish/completions/tutti.fish` or `source`. */
export function renderFish(commands: readonly CompletedCommand[]): string {
  return `# fish completion of tutti, made by \`tutti completion fish\`.

# Whether the command is this one.
function __tutti_in
    set -l words (commandline -opc)
    set -q words[2]; and test "$words[2]" = "$argv[1]"
end

# Whether the cursor is at this operand of the command: COMMAND NUMBER, then the flags without a value.
function __tutti_at
    __tutti_in $argv[1]; or return 1
    set -l words (commandline -opc)
    set -l switches $argv[3..]
    set -l at 1
    set -l is_value 0
    for word in $words[3..]
        if test $is_value = 1
            set is_value 0
        else if string match -qr -- '^-.+=' $word
        else if string match -qr -- '^-.' $word
            contains -- $word $switches; or set is_value 1
        else
            set at (math $at + 1)
        end
    end
    test $is_value = 0 -a $at = $argv[2]
end

function __tutti_models
    set -l words (commandline -opc)
    command tutti completion models -- $words[3..] 2>/dev/null
end

complete -c tutti -f
complete -c tutti -n ${FIRST} -l help -s h -d 'Print the commands'
complete -c tutti -n ${FIRST} -l version -d 'Print the version'
${commands.flatMap(renderCommand).join('\n')}
`
}

function renderCommand(command: CompletedCommand): readonly string[] {
  const { name, description, flags, operands } = command
  const switches = flags.filter(({ isSwitch }) => isSwitch).map((flag) => flag.name)
  return [
    `complete -c tutti -n ${FIRST} -a ${name} -d ${quote(description)}`,
    ...flags.map((flag) => renderFlag(name, flag)),
    ...operands.map((choices, i) => {
      const condition = ['__tutti_at', name, i + 1, ...switches].join(' ')
      return `complete -c tutti -n ${quote(condition)} ${toArguments(choices)}`
    }),
  ]
}

function renderFlag(command: string, flag: CompletedFlag): string {
  const { name, description, choices, isSwitch } = flag
  const written = name.startsWith('--') ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`
  // A switch takes no word behind it: fish would offer its values only, and no further flags.
  const value = isSwitch ? '' : `-r ${toArguments(choices)} `
  return `complete -c tutti -n '__tutti_in ${command}' ${written} ${value}-d ${quote(description)}`
}

function toArguments(choices: Choices): string {
  if (choices === 'file') return '-F'
  if (choices === 'folder') return "-f -a '(__fish_complete_directories)'"
  if (choices === 'model') return "-f -a '(__tutti_models)'"
  return choices.length === 0 ? '-f' : `-f -a ${quote(choices.join(' '))}`
}

function quote(text: string): string {
  return `'${text.replace(/['\\]/g, '\\$&')}'`
}
