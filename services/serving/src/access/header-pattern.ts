import { flagRefusal } from '@tutti/chassis'

/** Members of POSIX classes, as they stand within brackets. */
const POSIX_CLASSES: Readonly<Record<string, string>> = {
  alnum: '0-9A-Za-z',
  alpha: 'A-Za-z',
  digit: '0-9',
  graph: '!-~',
  lower: 'a-z',
  print: ' -~',
  punct: '!-\\/:-@\\[-`{-~',
  upper: 'A-Z',
  word: '0-9A-Za-z_',
  xdigit: '0-9A-Fa-f',
}

const QUOTED = /\\Q(?<quoted>[\s\S]*?)(?:\\E|$)/
const BRACKETS = /\[(?<brackets>\^?\]?(?:\\[\s\S]|\[:[^\]]*:\]|[^\]\\])*)\]/
const FLAGS = /\(\?(?<on>[imsU]*)(?<off>-[imsU]+)?(?<end>[:)])/
const OPENING = /(?<opening>\((?:\?P?<\w+>|(?!\?)))/
const OTHER = /\\[\s\S]|[\s\S]/
const TOKEN = new RegExp(
  [QUOTED, BRACKETS, FLAGS, OPENING, OTHER].map(({ source }) => source).join('|'),
  'g',
)

const FLAG_NAMES = ['i', 'm', 's'] as const

/** Tokens that JavaScript writes in another way. */
const OTHER_NAMES: Readonly<Record<string, string>> = { '\\A': '^', '\\z': '$' }

/**
 * Compiles a pattern for whole names of headers, in the syntax of RE2. As in tritonserver their case does not matter unless
 * the pattern says so: `(?-i)`.
 *
 * @throws ServeError FLAG_INVALID for a pattern that RE2 or JavaScript refuses.
 */
export function compileHeaderPattern(flag: string, pattern: string): RegExp {
  try {
    return new RegExp(`^${translate(pattern)}$`)
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw flagRefusal(flag, `got "${pattern}", want a regular expression: ${why}`, cause)
  }
}

/** Translates a pattern of RE2. JavaScript has flags of groups only, so each part with the same flags becomes a group. */
function translate(pattern: string): string {
  /** Flags of the groups that are open, outermost first. */
  const flags = ['i']
  let out = `(?:${opening('i')}`
  for (const { 0: token, groups = {} } of pattern.matchAll(TOKEN)) {
    const now = flags.at(-1) ?? ''
    const { end } = groups
    if (end !== undefined) {
      const next = changedFlags(now, groups)
      if (end === ')') flags.pop()
      flags.push(next)
      out += end === ')' ? `)${opening(next)}` : `(?:${opening(next)}`
    } else if (groups['opening'] !== undefined) {
      flags.push(now)
      out += `(?:${opening(now)}`
    } else if (token === ')') {
      flags.pop()
      out += '))'
    } else out += token === '|' ? `)|${opening(now)}` : translateToken(token, groups)
  }
  if (flags.length !== 1) throw new SyntaxError('parentheses do not match')
  return `${out}))`
}

function opening(flags: string): string {
  const off = FLAG_NAMES.filter((flag) => !flags.includes(flag)).join('')
  return off === '' ? `(?${flags}:` : `(?${flags}-${off}:`
}

/** Reads changed flags. U, which says how much is taken first, changes nothing where the whole name is matched. */
function changedFlags(now: string, groups: Readonly<Record<string, string>>): string {
  const { on = '', off = '' } = groups
  return FLAG_NAMES.filter((it) => (now + on).includes(it) && !off.includes(it)).join('')
}

function translateToken(token: string, groups: Readonly<Record<string, string>>): string {
  const { quoted, brackets } = groups
  if (token === '(' || /^\\\d$/.test(token)) {
    throw new SyntaxError('RE2 has neither groups that look around nor references to groups')
  }
  if (quoted !== undefined) return quoted.replaceAll(/[^\w]/g, String.raw`\$&`)
  if (brackets === undefined) return OTHER_NAMES[token] ?? token
  const inside = brackets.replaceAll(/\[:([^\]]*):\]/g, (whole, name: string) => {
    const members = POSIX_CLASSES[name]
    if (members === undefined) throw new SyntaxError(`unknown class ${whole}`)
    return members
  })
  return `[${inside.replace(/^(\^?)\]/, String.raw`$1\]`)}]`
}
