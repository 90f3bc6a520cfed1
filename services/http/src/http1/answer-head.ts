import { STATUS_CODES } from 'node:http'

/** The status and the header fields of an answer; fields that are undefined are left out. */
export interface AnswerHead {
  readonly status: number
  readonly headers: Readonly<Record<string, string | number | undefined>>
}

const NOT_OF_A_NAME = /[^!#$%&'*+.^_`|~\w-]/
const NOT_OF_A_VALUE = /[^\t\x20-\x7e\x80-\xff]/
const MS_PER_SECOND = 1000

/**
 * Formats header fields as latin1.
 *
 * @throws TypeError for a name or value that would end its line: it is a bug of the program, as with node:http.
 */
export function formatFields(headers: AnswerHead['headers']): string {
  let text = ''
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) text += formatField(name, value)
  }
  return text
}

/** Formats one header field. @throws TypeError as `formatFields`. */
export function formatField(name: string, value: string | number): string {
  if (name === '' || NOT_OF_A_NAME.test(name) || NOT_OF_A_VALUE.test(String(value))) {
    throw new TypeError(`header '${name}': got ${JSON.stringify(value)}, want text of one line`)
  }
  return `${name}: ${value}\r\n`
}

/** Formats a status line. */
export function formatStatus(status: number): string {
  return `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n`
}

let dateSecond = 0
let dateField = ''

/** Formats the field Date. @see RFC 9110, 6.6.1 */
export function formatDate(): string {
  const second = Math.floor(Date.now() / MS_PER_SECOND)
  if (second !== dateSecond) {
    dateSecond = second
    dateField = `date: ${new Date(MS_PER_SECOND * second).toUTCString()}\r\n`
  }
  return dateField
}

/** Checks whether answers of a status have no body, whatever their headers say. @see RFC 9110, 6.4.1 */
export function isWithoutBody(status: number): boolean {
  return status === 204 || status === 304
}
