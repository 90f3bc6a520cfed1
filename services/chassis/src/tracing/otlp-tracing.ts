import {
  type Context,
  createTraceState,
  type HrTime,
  ROOT_CONTEXT,
  SpanKind as SdkKind,
  type Span as SdkSpan,
  type SpanContext,
  SpanStatusCode,
  TraceFlags,
  type Tracer,
  trace,
} from '@opentelemetry/api'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import {
  detectResources,
  resourceAttributesEnvDetector,
  resourceFromAttributes,
} from '@opentelemetry/resources'
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  type ReadableSpan,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import type { ServeError } from '@tutti/errors'
import type { TraceParent } from '../calls/call-context.ts'
import { systemClock } from '../calls/call-scope.ts'
import { limitLog } from '../log/limit-log.ts'
import { type Logger, silentLogger } from '../log/log.ts'
import { TRACING_EVENTS } from '../log/log-events.ts'
import { parseTraceParent } from './trace-parent.ts'
import type { Span, SpanAttributes, SpanKind, SpanOptions, Tracing } from './tracing.ts'

export interface OtlpOptions {
  /** Base of OTLP/HTTP, e.g. `http://collector:4318`; `/v1/traces` is added. */
  readonly otlpEndpoint: string
  readonly serviceName: string
  /** Share of the traces begun here that are sampled, from 0 to 1; default 1. Incoming traces keep their caller's choice. */
  readonly sampleRatio?: number
  /** Logger for spans that the collector did not take; silent if absent. */
  readonly log?: Logger
}

/**
 * Makes tracing to an OTLP/HTTP collector. The SDK itself reads OTEL_EXPORTER_OTLP_HEADERS and OTEL_RESOURCE_ATTRIBUTES of the
 * process.
 */
export function createOtlpTracing(o: OtlpOptions): Tracing {
  const url = `${o.otlpEndpoint.replace(/\/+$/, '')}/v1/traces`
  const exporter = withLog(new OTLPTraceExporter({ url }), o.log ?? silentLogger)
  const detected = detectResources({ detectors: [resourceAttributesEnvDetector] })
  const provider = new TracerProvider({
    resource: detected.merge(resourceFromAttributes({ 'service.name': o.serviceName })),
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(o.sampleRatio ?? 1) }),
    spanProcessors: [new BatchSpanProcessor({ exporter })],
  })
  const tracer = provider.getTracer('tutti')
  return {
    isEnabled: true,
    startSpan: (name, options) => startSpan(tracer, name, options),
    // A collector that is away must not hold up a process that closes.
    shutdown: () => provider.shutdown().catch(() => {}),
  }
}

const LOST_LINE_MS = 60_000

/**
 * Logs refusals of the collector. The SDK reports them only to its own logger, which is not set: a wrong address would look like
 * no requests.
 */
function withLog(exporter: SpanExporter, base: Logger): SpanExporter {
  const log = limitLog(base, { clock: systemClock, lines: 1, everyMs: LOST_LINE_MS })
  return {
    export: (spans, done) => {
      exporter.export(spans, (result) => {
        const { error } = result
        if (error !== undefined) {
          log.warn(TRACING_EVENTS.lost, { spans: spans.length, error: error.message })
        }
        done(result)
      })
    },
    forceFlush: async () => exporter.forceFlush?.(),
    shutdown: () => exporter.shutdown(),
  }
}

const KINDS: Readonly<Record<SpanKind, SdkKind>> = {
  internal: SdkKind.INTERNAL,
  server: SdkKind.SERVER,
  client: SdkKind.CLIENT,
}

function startSpan(tracer: Tracer, name: string, o: SpanOptions): Span {
  const options = {
    kind: KINDS[o.kind],
    ...(o.attributes === undefined ? {} : { attributes: { ...o.attributes } }),
  }
  return new OtlpSpan(tracer, tracer.startSpan(name, options, toContext(o.parent)))
}

class OtlpSpan implements Span {
  readonly #tracer: Tracer
  readonly #span: SdkSpan
  readonly traceParent: TraceParent
  readonly sampledTraceId: string | undefined

  constructor(tracer: Tracer, span: SdkSpan) {
    this.#tracer = tracer
    this.#span = span
    const context = span.spanContext()
    this.traceParent = toTraceParent(context)
    const isSampled = (context.traceFlags & TraceFlags.SAMPLED) !== 0
    this.sampledTraceId = isSampled ? context.traceId : undefined
  }

  addPart(name: string, fromMs: number, toMs: number): void {
    if (!isReadable(this.#span)) return
    const { startTime } = this.#span
    const context = trace.setSpan(ROOT_CONTEXT, this.#span)
    const part = this.#tracer.startSpan(name, { startTime: later(startTime, fromMs) }, context)
    part.end(later(startTime, toMs))
  }

  addEvent(name: string, attributes: SpanAttributes): void {
    this.#span.addEvent(name, { ...attributes })
  }

  setAttributes(attributes: SpanAttributes): void {
    this.#span.setAttributes({ ...attributes })
  }

  recordError(error: ServeError): void {
    this.#span.setStatus({ code: SpanStatusCode.ERROR, message: error.message })
    this.#span.setAttribute('error.type', error.reason)
    const where = Object.entries(error.details).map(([key, value]) => [`tutti.${key}`, value])
    this.#span.addEvent('exception', {
      'exception.type': error.reason,
      'exception.message': error.message,
      'rpc.grpc.status': error.code,
      ...Object.fromEntries(where),
    })
  }

  end(): void {
    this.#span.end()
  }
}

/** Tells whether a span has readable times; one that is not sampled has none. */
function isReadable(span: SdkSpan): span is SdkSpan & Pick<ReadableSpan, 'startTime'> {
  return span.isRecording() && 'startTime' in span
}

function later([seconds, nanos]: HrTime, ms: number): HrTime {
  const sum = nanos + Math.round(ms * 1e6)
  return [seconds + Math.floor(sum / 1e9), sum % 1e9]
}

function toContext(parent: TraceParent | undefined): Context {
  const parsed = parent === undefined ? undefined : parseTraceParent(parent.traceparent)
  if (parsed === undefined) return ROOT_CONTEXT
  return trace.setSpanContext(ROOT_CONTEXT, {
    ...parsed,
    isRemote: true,
    ...(parent?.tracestate === undefined
      ? {}
      : { traceState: createTraceState(parent.tracestate) }),
  })
}

function toTraceParent(context: SpanContext): TraceParent {
  const flags = context.traceFlags.toString(16).padStart(2, '0')
  const traceparent = `00-${context.traceId}-${context.spanId}-${flags}`
  const tracestate = context.traceState?.serialize()
  return tracestate ? { traceparent, tracestate } : { traceparent }
}
