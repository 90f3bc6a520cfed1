import type { Choices } from '@tutti/command-line/program'
import type { CompletedCommand, CompletedFlag } from './completions.ts'

/**
 * Renders the completion script for bash 3.2 and newer. The script needs no other package: Readline splits words at `=` and `:`,
 * and the script joins them again. Names of models come from a server, so the script never expands them.
 */
export function renderBash(commands: readonly CompletedCommand[]): string {
  const names = commands.map(({ name }) => name).join(' ')
  return `${HEAD}
# What there is for a command: its flags, those without a value, and what its operands may be.
_tutti_command() {
  case $1 in
${commands.map(renderCommand).join('')}    *) return 1 ;;
  esac
}

# What the value of a flag may be.
_tutti_value() {
  case "$1 $2" in
${commands.flatMap(renderValues).join('')}  esac
}
${TAIL.replace('@COMMANDS@', names)}`
}

function renderCommand({ name, flags, operands }: CompletedCommand): string {
  const switches = flags.filter(({ isSwitch }) => isSwitch)
  return `    ${name})
      flags='${namesOf(flags)}'
      switches=' ${namesOf(switches)} '
      operands=(${operands.map((choices) => `'${toWord(choices)}'`).join(' ')})
      ;;
`
}

/** Flags with the same values share a line. */
function renderValues({ name, flags }: CompletedCommand): readonly string[] {
  const groups = Map.groupBy(flags, ({ choices }) => toWord(choices))
  return [...groups].flatMap(([word, members]) => {
    const patterns = members.map((flag) => `'${name} ${flag.name}'`).join(' | ')
    return word === '' ? [] : [`    ${patterns}) choices='${word}' ;;\n`]
  })
}

function namesOf(flags: readonly CompletedFlag[]): string {
  return flags.map(({ name }) => name).join(' ')
}

/** Writes choices as a word: fixed words as they are, a kind of name that the shell looks up with @ before it. */
function toWord(choices: Choices): string {
  return typeof choices === 'string' ? `@${choices}` : choices.join(' ')
}

const HEAD = `# bash completion of tutti, made by \`tutti completion bash\`.

# Sets words and cur: the line up to the cursor, as the user wrote its words.
_tutti_words() {
  local line=\${COMP_LINE:0:COMP_POINT} word i n=-1
  for ((i = 0; i < COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    if [[ $i == 0 || $line == [[:space:]]* ]]; then n=$((n + 1)); fi
    line=\${line#"\${line%%[![:space:]]*}"}
    words[n]=\${words[n]-}$word
    line=\${line#"$word"}
  done
  cur=\${line#"\${line%%[![:space:]]*}"}
  if [[ $line == [[:space:]]* || $n == 0 ]]; then return; fi
  # What stands before the cursor without a space is one word with it.
  cur=\${words[n]}$cur
  unset "words[n]"
}

# Offers those of the words that begin with cur, as they have to be written. $1: what stands before them.
_tutti_offer() {
  local before=$1 word kept=0 i
  shift
  # Readline replaces only what stands behind the last character at which it splits.
  for ((i = 0; i < \${#cur}; i++)); do
    word=\${cur:i:1}
    if [[ $word == [=:] && $COMP_WORDBREAKS == *"$word"* ]]; then kept=$((i + 1)); fi
  done
  for word in "$@"; do
    word=$before$word
    if [[ $word == "$cur"* ]]; then
      printf -v word %q "\${word:kept}"
      COMPREPLY[\${#COMPREPLY[@]}]=$word
    fi
  done
}
`

const TAIL = `
_tutti() {
  local words operands names name word command flags='' switches='' choices='' cur='' i=2
  # The flag whose value stands at the cursor, what stands before the value in its word, and the number of the operand.
  local flag='' before='' operand=0 is_operand=0
  words=() operands=() COMPREPLY=()
  _tutti_words
  # Without a match Readline offers files: only if files are wanted.
  compopt +o default 2>/dev/null
  if ((\${#words[@]} < 2)); then
    _tutti_offer '' @COMMANDS@ --help --version
    return
  fi
  command=\${words[1]}
  _tutti_command "$command" || return
  while ((i < \${#words[@]})); do
    word=\${words[i]}
    i=$((i + 1))
    case $word in
      --)
        operand=$((operand + \${#words[@]} - i)) is_operand=1
        break
        ;;
      -?*=*) ;;
      -?*)
        if [[ $switches != *" $word "* ]]; then
          if ((i == \${#words[@]})); then flag=$word; fi
          i=$((i + 1))
        fi
        ;;
      *) operand=$((operand + 1)) ;;
    esac
  done
  if [[ $flag == '' && $is_operand == 0 && $cur == -* ]]; then
    if [[ $cur != -*=* ]]; then
      _tutti_offer '' $flags
      return
    fi
    flag=\${cur%%=*} before=\${cur%%=*}=
  fi
  if [[ $flag == '' ]]; then choices=\${operands[operand]-}; else _tutti_value "$command" "$flag"; fi
  case $choices in
    @file) compopt -o default 2>/dev/null ;;
    @folder) compopt -o dirnames 2>/dev/null ;;
    @model)
      names=$(command tutti completion models -- "\${words[@]:2}" 2>/dev/null)
      while IFS= read -r name; do
        if [[ $name != '' ]]; then _tutti_offer "$before" "$name"; fi
      done <<<"$names"
      ;;
    *) _tutti_offer "$before" $choices ;;
  esac
}

complete -o default -F _tutti tutti
`
