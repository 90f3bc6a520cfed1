import type { ServeError } from '@tutti/errors'
import type { TraceParent } from '../calls/call-context.ts'

export type SpanKind = 'internal' | 'server' | 'client'

export type SpanAttributes = Readonly<Record<string, string | number | boolean>>

export interface SpanOptions {
  /** The span's parent, of this process or of another; absent for the root of a trace. */
  readonly parent?: TraceParent | undefined
  readonly kind: SpanKind
  readonly attributes?: SpanAttributes
}

/** A span that was started. After `end()` it takes nothing more. */
export interface Span {
  /**
   * Trace parent to send with the calls that this span makes. Without tracing it is the parent's own; undefined if there is none.
   */
  readonly traceParent: TraceParent | undefined
  /** Trace id for exemplars, 32 hexadecimal digits; undefined unless the trace is sampled and this span goes to a collector. */
  readonly sampledTraceId: string | undefined
  /** Adds a child that is over already. Times are milliseconds since this span began. */
  addPart(name: string, fromMs: number, toMs: number): void
  /** Adds something that happened now. A span has 128 of them at most. */
  addEvent(name: string, attributes: SpanAttributes): void
  setAttributes(attributes: SpanAttributes): void
  /** Marks the span as failed, with code, reason, message and where it happened. */
  recordError(error: ServeError): void
  end(): void
}

/** Makes spans and sends them away in the background. Never throws for what a collector does. */
export interface Tracing {
  /** False if spans lead nowhere, so that no attributes need be gathered for them. */
  readonly isEnabled: boolean
  startSpan(name: string, o: SpanOptions): Span
  /** Sends the spans that wait. Resolves even if the collector cannot be reached. */
  shutdown(): Promise<void>
}

/** Keeps no spans but passes an incoming trace context on. */
export const passiveTracing: Tracing = {
  isEnabled: false,
  startSpan: (_name, o) => (o.parent === undefined ? ROOTLESS : passiveSpan(o.parent)),
  shutdown: () => Promise.resolve(),
}

function passiveSpan(traceParent: TraceParent | undefined): Span {
  return {
    traceParent,
    sampledTraceId: undefined,
    addPart: nothing,
    addEvent: nothing,
    setAttributes: nothing,
    recordError: nothing,
    end: nothing,
  }
}

function nothing(): void {}

const ROOTLESS = passiveSpan(undefined)
