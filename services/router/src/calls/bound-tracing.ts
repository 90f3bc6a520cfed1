import { passiveTracing, type Tracing } from '@tutti/chassis'

/** Spans of one request, that of its ensemble included; with the three parts that each attempt has, half of what may wait for the collector. */
const MAX_SPANS = 256

/** The tracing of one request. */
export interface BoundTracing extends Tracing {
  /** Spans that were not started, because there were too many. */
  readonly leftOut: number
}

/**
 * Bounds the spans of one request: one with thousands of items would push those of others out of the queue to the collector. Further ones
 * are counted, and what is called within them is traced as if they were not there.
 */
export function boundTracing(tracing: Tracing): BoundTracing {
  let left = MAX_SPANS
  let leftOut = 0
  return {
    isEnabled: tracing.isEnabled,
    get leftOut() {
      return leftOut
    },
    startSpan: (name, options) => {
      if (left > 0) {
        left -= 1
        return tracing.startSpan(name, options)
      }
      leftOut += 1
      return passiveTracing.startSpan(name, options)
    },
    shutdown: () => tracing.shutdown(),
  }
}
