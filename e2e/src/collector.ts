import { text } from 'node:stream/consumers'
import { type Answer, startArtifactServer } from '@tutti/repository/testing'
import type { Test } from 'tap'

/** A span as it arrives in OTLP's JSON. */
export interface Span {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly attributes: readonly {
    readonly key: string
    readonly value: { readonly stringValue?: string }
  }[]
  readonly status: { readonly code?: number }
}

interface Export {
  readonly resourceSpans: readonly {
    readonly scopeSpans: readonly { readonly spans: readonly Span[] }[]
  }[]
}

/** An OTLP/HTTP collector that keeps what it is sent. It ends with the test. */
export async function startCollector(t: Test): Promise<{ url: string; spans: Span[] }> {
  const spans: Span[] = []
  const take: Answer = async (request, response) => {
    const { resourceSpans }: Export = JSON.parse(await text(request))
    for (const { scopeSpans } of resourceSpans) {
      for (const scope of scopeSpans) spans.push(...scope.spans)
    }
    response.setHeader('content-type', 'application/json').end('{}')
  }
  const server = await startArtifactServer(take)
  t.teardown(() => server.close())
  return { url: server.origin, spans }
}

/** Below a call of a step: its parts, one after the other, within it. */
export function checkParts(t: Test, call: Span, spans: readonly Span[]): void {
  const parts = spans.filter(({ parentSpanId }) => parentSpanId === call.spanId)
  t.same(
    parts.map(({ name }) => name),
    ['transfer', 'queue', 'compute'],
  )
  let at = BigInt(call.startTimeUnixNano)
  for (const { traceId, startTimeUnixNano, endTimeUnixNano } of parts) {
    t.equal(traceId, call.traceId)
    t.equal(BigInt(startTimeUnixNano), at)
    t.ok(BigInt(endTimeUnixNano) >= at)
    at = BigInt(endTimeUnixNano)
  }
  t.ok(at <= BigInt(call.endTimeUnixNano), 'they end before it')
}
