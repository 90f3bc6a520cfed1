import { badFrame } from './frames.ts'

const isNames = (list: unknown): list is readonly string[] =>
  Array.isArray(list) && list.every((item) => typeof item === 'string')

type Fields = Readonly<Record<string, unknown>>

/** @throws ServeError MALFORMED_MESSAGE if the field is no text. */
export function readText(fields: Fields, name: string): string {
  const value = fields[name]
  if (typeof value === 'string') return value
  throw badFrame(`${JSON.stringify(value)} as "${name}", which is a text`)
}

/** @throws ServeError MALFORMED_MESSAGE if the field is no number. */
export function readNumber(fields: Fields, name: string): number {
  const value = fields[name]
  if (typeof value === 'number') return value
  throw badFrame(`${JSON.stringify(value)} as "${name}", which is a number`)
}

/** @throws ServeError MALFORMED_MESSAGE if the field is no list of texts. */
export function readNames(fields: Fields, name: string): readonly string[] {
  const value = fields[name]
  if (isNames(value)) return value
  throw badFrame(`${JSON.stringify(value)} as "${name}", which is a list of texts`)
}
