import type { TraceParent } from '../calls/call-context.ts'

/** The parts of a W3C `traceparent`. */
export interface ParsedTraceParent {
  /** 32 hexadecimal digits, not all 0. */
  readonly traceId: string
  /** 16 hexadecimal digits, not all 0. */
  readonly spanId: string
  /** Bit 0: sampled. */
  readonly traceFlags: number
}

const SHAPE = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/

/**
 * Reads a `traceparent`. Versions above 00 may have more behind the flags, which is left out.
 *
 * @returns undefined if it is not valid; the caller then begins a trace of its own, as the standard asks.
 * @see W3C Trace Context, section 3.2
 */
export function parseTraceParent(text: string): ParsedTraceParent | undefined {
  const [, version, traceId = '', spanId = '', flags = '', rest] = SHAPE.exec(text) ?? []
  if (version === undefined || version === 'ff') return undefined
  if (version === '00' && rest !== undefined) return undefined
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16) }
}

/** Characters of a request's id in a log line. A longer id is cut, because clients choose it. */
export const LOGGED_ID_CHARACTERS = 256

/**
 * Makes the log fields that name a request: `request`, the id that the client gave, and `traceId`. Called only for lines that are
 * written.
 */
export function requestFields(id: string, trace: TraceParent | undefined) {
  const traceId = trace && parseTraceParent(trace.traceparent)?.traceId
  return {
    ...(id !== '' && { request: id.slice(0, LOGGED_ID_CHARACTERS) }),
    ...(traceId !== undefined && { traceId }),
  }
}

const SAMPLED = 1

/** Finds the id of a trace that its caller has sampled; undefined for others. */
export function sampledTraceId(trace: TraceParent | undefined): string | undefined {
  const parts = trace && parseTraceParent(trace.traceparent)
  return parts !== undefined && (parts.traceFlags & SAMPLED) === SAMPLED ? parts.traceId : undefined
}
