import {
  type Context,
  createTraceState,
  ROOT_CONTEXT,
  SpanKind as SdkKind,
  type Span as SdkSpan,
  type SpanContext,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { resourceFromAttributes } from '@opentelemetry/resources'
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import type { ServeError } from '@tutti/errors'
import type { TraceParent } from './call-context.ts'
import { parseTraceParent } from './trace-parent.ts'
import {
  passiveTracing,
  type Span,
  type SpanKind,
  type SpanOptions,
  type Tracing,
} from './tracing.ts'

export interface TracingOptions {
  /** Base of OTLP/HTTP, e.g. `http://collector:4318`; `/v1/traces` is added. Absent: no spans. */
  readonly otlpEndpoint?: string | undefined
  readonly serviceName: string
  /** Share of the traces that begin here, from 0 to 1; those that come in keep their caller's choice. Default 1. */
  readonly sampleRatio?: number
}

/** Makes tracing to an OTLP/HTTP collector, or passive tracing if no endpoint is set. The SDK stops at this file. */
export function createTracing(o: TracingOptions): Tracing {
  const { otlpEndpoint = '' } = o
  if (otlpEndpoint === '') return passiveTracing
  const exporter = new OTLPTraceExporter({ url: `${otlpEndpoint.replace(/\/+$/, '')}/v1/traces` })
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ 'service.name': o.serviceName }),
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
  return new OtlpSpan(tracer.startSpan(name, options, toContext(o.parent)))
}

class OtlpSpan implements Span {
  readonly #span: SdkSpan
  readonly traceParent: TraceParent

  constructor(span: SdkSpan) {
    this.#span = span
    this.traceParent = toTraceParent(span.spanContext())
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
