import type { Span, Tracing } from '@tutti/chassis'

/** A span that a test reads. */
export interface RecordedSpan {
  readonly name: string
  /** Name of the span above it; '' for the root. */
  readonly parent: string
  readonly attributes: Record<string, string | number | boolean>
  readonly events: (readonly [string, object])[]
  /** Reason of its error; '' for none. */
  reason: string
  hasEnded: boolean
}

/** Makes tracing that keeps its spans, in the order of their begin. */
export function recordedSpans() {
  const spans: RecordedSpan[] = []
  const tracing: Tracing = {
    isEnabled: true,
    startSpan: (name, { parent, attributes = {} }) => {
      const above = spans[Number(parent?.traceparent)]
      const recorded: RecordedSpan = {
        name,
        parent: above?.name ?? '',
        attributes: { ...attributes },
        events: [],
        reason: '',
        hasEnded: false,
      }
      const traceParent = { traceparent: String(spans.push(recorded) - 1) }
      return toSpan(recorded, traceParent)
    },
    shutdown: () => Promise.resolve(),
  }
  return { spans, tracing }
}

function toSpan(recorded: RecordedSpan, traceParent: Span['traceParent']): Span {
  return {
    traceParent,
    sampledTraceId: undefined,
    addPart: () => {},
    addEvent: (name, attributes) => void recorded.events.push([name, attributes]),
    setAttributes: (attributes) => void Object.assign(recorded.attributes, attributes),
    recordError: ({ reason }) => {
      recorded.reason = reason
    },
    end: () => {
      recorded.hasEnded = true
    },
  }
}
