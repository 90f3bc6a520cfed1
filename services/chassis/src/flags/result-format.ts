import { type FlagTable, withDashes } from './flag-spec.ts'

/** How a command prints its results, and its errors. */
export type ResultFormat = 'text' | 'json'

/** The flag of commands that print results. */
export const FORMAT_FLAG = {
  type: 'enum',
  values: ['text', 'json'],
  default: 'text',
  description: 'Output format: text for people, JSON for scripts.',
} as const satisfies FlagTable[string]

/**
 * Finds the format for the errors of a command line: the value of its last flag `format`, under any of the flag's names. It works
 * even if the command line cannot be parsed.
 *
 * @param table - flags of the command; text without a flag `format`.
 */
export function readResultFormat({ format }: FlagTable, argv: readonly string[]): ResultFormat {
  if (format === undefined) return 'text'
  const names = ['format', ...(format.aliases ?? [])].map(withDashes)
  const end = argv.indexOf('--')
  const words = end < 0 ? argv : argv.slice(0, end)
  const values = words.flatMap((word, i) => {
    const [name = '', ...inline] = word.split('=')
    if (!names.includes(name)) return []
    return [inline.length > 0 ? inline.join('=') : (words[i + 1] ?? '')]
  })
  return values.at(-1)?.toLowerCase() === 'json' ? 'json' : 'text'
}
