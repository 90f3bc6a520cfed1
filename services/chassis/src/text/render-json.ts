import { printable } from './printable.ts'

/** Renders a result as indented JSON without control sequences of a terminal. The text ends with a line end. */
export function renderJson(result: object): string {
  // Line ends of its texts are escaped already.
  const lines = JSON.stringify(result, undefined, 2).split('\n')
  return `${lines.map(printable).join('\n')}\n`
}

/** Renders a result as one line of JSON without control sequences of a terminal. The text ends with a line end. */
export function renderJsonLine(result: object): string {
  return `${printable(JSON.stringify(result))}\n`
}
