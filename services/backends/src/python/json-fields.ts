import { badFrame } from './frames.ts'

type Fields = Readonly<Record<string, unknown>>

/** Reads a field that is a text. @throws ServeError MALFORMED_MESSAGE if it is no text. */
export function readText(fields: Fields, name: string): string {
  const value = fields[name]
  return typeof value === 'string' ? value : refuse(name, value, 'a text')
}

/** Reads a field that is a number. @throws ServeError MALFORMED_MESSAGE if it is no number. */
export function readNumber(fields: Fields, name: string): number {
  const value = fields[name]
  return typeof value === 'number' ? value : refuse(name, value, 'a number')
}

/** Reads a field that is a list of texts. @throws ServeError MALFORMED_MESSAGE if it is no list of texts. */
export function readNames(fields: Fields, name: string): readonly string[] {
  const value = fields[name]
  return isNames(value) ? value : refuse(name, value, 'a list of texts')
}

function isNames(list: unknown): list is readonly string[] {
  return Array.isArray(list) && list.every((item) => typeof item === 'string')
}

function refuse(name: string, value: unknown, want: string): never {
  throw badFrame(`${JSON.stringify(value)} as "${name}", which is ${want}`)
}
