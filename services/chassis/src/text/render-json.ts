import { printable } from './printable.ts'

/** A result as JSON, for people who look at it too, without control sequences of a terminal. Ends with a line end. */
export function renderJson(result: object): string {
  // Line ends of its texts are escaped already.
  const lines = JSON.stringify(result, undefined, 2).split('\n')
  return `${lines.map(printable).join('\n')}\n`
}

/** The same in one line. */
export function renderJsonLine(result: object): string {
  return `${printable(JSON.stringify(result))}\n`
}
