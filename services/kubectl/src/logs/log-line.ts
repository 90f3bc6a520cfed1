import { LOGGED_ID_CHARACTERS } from '@tutti/chassis'

/** A line of a container, with the time at which it was written. */
export interface ContainerLine {
  /** Time of the line as the kubelet gives it: RFC 3339 with nanoseconds. */
  readonly time: string
  /** Time of the line in milliseconds since the epoch, with a fraction. */
  readonly timeMs: number
  readonly text: string
}

const TIMED = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d+)?(Z|[+-]\d\d:\d\d) ?(.*)$/su

/** Parses a line that begins with its time. @returns undefined for a line without a time. */
export function parseLogLine(line: string): ContainerLine | undefined {
  const [, seconds = '', fraction = '', zone = '', text = ''] = TIMED.exec(line) ?? []
  const startMs = Date.parse(`${seconds}${zone}`)
  if (Number.isNaN(startMs)) return undefined
  const time = `${seconds}${fraction}${zone}`
  return { time, timeMs: startMs + Number(`0${fraction}`) * 1000, text }
}

/**
 * Tells whether a line is about a request: its field `request` or `traceId` is the id. A line that is not JSON must contain the
 * id as a word, since servers write other formats too.
 */
export function isAboutRequest(text: string, id: string): boolean {
  if (!text.includes(id.slice(0, LOGGED_ID_CHARACTERS)) && !text.includes('\\')) return false
  const fields = parseFields(text)
  if (fields === undefined) return isWordOf(text, id)
  const { request, traceId } = fields
  return request === id.slice(0, LOGGED_ID_CHARACTERS) || traceId === id
}

function parseFields(text: string): Readonly<Record<string, unknown>> | undefined {
  if (!text.startsWith('{')) return undefined
  try {
    return JSON.parse(text)
  } catch {
    // A line that was cut, or another's.
    return undefined
  }
}

/** Ids have any characters, so this is no regular expression. */
function isWordOf(text: string, id: string): boolean {
  for (let at = text.indexOf(id); at >= 0; at = text.indexOf(id, at + 1)) {
    const around = `${text[at - 1] ?? ' '}${text[at + id.length] ?? ' '}`
    if (!/[\p{L}\p{N}_-]/u.test(around)) return true
  }
  return false
}
