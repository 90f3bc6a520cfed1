import type { IncomingHttpHeaders } from 'node:http'
import { parseTraceParent, type TraceParent } from '@tutti/chassis'

/** W3C Trace Context asks to carry at least so many characters; longer values are dropped whole. */
const TRACESTATE_CHARACTERS = 512

/** Reads the W3C trace context of a request; a `traceparent` that is not valid is left out, as the standard asks. */
export function readTrace(headers: IncomingHttpHeaders): TraceParent | undefined {
  const { traceparent, tracestate } = headers
  if (typeof traceparent !== 'string' || parseTraceParent(traceparent) === undefined) {
    return undefined
  }
  return typeof tracestate === 'string' && tracestate.length <= TRACESTATE_CHARACTERS
    ? { traceparent, tracestate }
    : { traceparent }
}
