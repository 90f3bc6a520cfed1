import { createServer, type IncomingHttpHeaders } from 'node:http'
import { ServeError } from '@tutti/errors'
import t, { type Test } from 'tap'
import { z } from 'zod'
import { silentLogger, toLogger } from '../log/log.ts'
import { openTracing } from './open-tracing.ts'
import { createOtlpTracing } from './otlp-tracing.ts'
import { parseTraceParent } from './trace-parent.ts'

const Attribute = z.object({
  key: z.string(),
  value: z.record(z.string(), z.unknown()).transform((value) => Object.values(value)[0]),
})
const ExportedSpan = z.object({
  traceId: z.string(),
  spanId: z.string(),
  parentSpanId: z.string().optional(),
  traceState: z.string().optional(),
  name: z.string(),
  kind: z.number(),
  startTimeUnixNano: z.string(),
  endTimeUnixNano: z.string(),
  attributes: z.array(Attribute),
  events: z.array(z.object({ name: z.string(), attributes: z.array(Attribute) })),
  status: z.object({ code: z.number(), message: z.string().optional() }),
})
const ExportRequest = z.object({
  resourceSpans: z.array(
    z.object({
      resource: z.object({ attributes: z.array(Attribute) }),
      scopeSpans: z.array(z.object({ spans: z.array(ExportedSpan) })),
    }),
  ),
})

interface Received {
  readonly path: string | undefined
  readonly headers: IncomingHttpHeaders
  readonly body: z.infer<typeof ExportRequest>
}

/** A collector that keeps what it got. */
async function startCollector(t: Test) {
  const received: Received[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const body = ExportRequest.parse(JSON.parse(Buffer.concat(chunks).toString()))
      received.push({ path: request.url, headers: request.headers, body })
      response.setHeader('content-type', 'application/json').end('{}')
    })
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : undefined
  const spans = () =>
    received.flatMap(({ body }) =>
      body.resourceSpans.flatMap((resource) => resource.scopeSpans.flatMap((scope) => scope.spans)),
    )
  return { endpoint: `http://127.0.0.1:${port}/`, received, spans }
}

const PARENT = {
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  tracestate: 'vendor=x',
}

await t.test('spans arrive with parents, kinds and attributes', async (t) => {
  const { endpoint, received, spans } = await startCollector(t)
  // oxlint-disable-next-line node/no-process-env -- the SDK reads it there
  process.env['OTEL_EXPORTER_OTLP_HEADERS'] = 'x-key=k%20v'
  const tracing = createOtlpTracing({ otlpEndpoint: endpoint, serviceName: 'tutti-router' })
  t.equal(tracing.isEnabled, true)
  const outer = tracing.startSpan('infer', {
    parent: PARENT,
    kind: 'server',
    attributes: { model: 'ens' },
  })
  const inner = tracing.startSpan('step detect', { parent: outer.traceParent, kind: 'client' })
  inner.end()
  outer.end()
  await tracing.shutdown()

  t.match(received[0], { path: '/v1/traces', headers: { 'x-key': 'k v' } })
  t.match(received[0]?.body.resourceSpans[0]?.resource.attributes, [
    { key: 'service.name', value: 'tutti-router' },
  ])
  const sent = spans()
  t.match(
    sent.find((span) => span.name === 'infer'),
    {
      traceId: '0af7651916cd43dd8448eb211c80319c',
      parentSpanId: 'b7ad6b7169203331',
      traceState: 'vendor=x',
      kind: 2,
      attributes: [{ key: 'model', value: 'ens' }],
    },
  )
  t.match(
    sent.find((span) => span.name === 'step detect'),
    {
      traceId: '0af7651916cd43dd8448eb211c80319c',
      parentSpanId: parseTraceParent(outer.traceParent?.traceparent ?? '')?.spanId,
      kind: 3,
    },
  )
  t.equal(outer.traceParent?.tracestate, 'vendor=x')
})

await t.test('parts of a span are children with times of their own', async (t) => {
  const { endpoint, received, spans } = await startCollector(t)
  // oxlint-disable-next-line node/no-process-env -- the SDK reads it there
  process.env['OTEL_RESOURCE_ATTRIBUTES'] = 'k8s.pod.name=router-0,service.name=other'
  const tracing = createOtlpTracing({ otlpEndpoint: endpoint, serviceName: 'tutti-router' })
  const span = tracing.startSpan('execute', { kind: 'client', parent: PARENT })
  t.equal(span.sampledTraceId, '0af7651916cd43dd8448eb211c80319c')
  span.addPart('transfer', 0, 0.25)
  span.addPart('compute', 0.25, 1999.5)
  span.end()
  await tracing.shutdown()
  const named = (wanted: string) => spans().find(({ name }) => name === wanted)
  const whole = named('execute')
  const offsets = (name: string) => {
    const { startTimeUnixNano, endTimeUnixNano, parentSpanId } = named(name) ?? {}
    t.equal(parentSpanId, whole?.spanId)
    return [startTimeUnixNano, endTimeUnixNano].map((time) =>
      Number(BigInt(time ?? 0) - BigInt(whole?.startTimeUnixNano ?? 0)),
    )
  }
  t.same(offsets('transfer'), [0, 250_000])
  t.same(offsets('compute'), [250_000, 1_999_500_000])
  t.match(
    received[0]?.body.resourceSpans[0]?.resource.attributes,
    new Set([
      { key: 'k8s.pod.name', value: 'router-0' },
      { key: 'service.name', value: 'tutti-router' },
    ]),
  )
})

await t.test('a collector that refuses spans is logged once a minute', async (t) => {
  const server = createServer((_, response) => response.writeHead(401).end())
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  t.teardown(() => server.close())
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : undefined
  const lines: object[] = []
  const log = toLogger({
    settings: silentLogger.settings,
    write: (level, message, fields) => void lines.push({ level, message, ...fields }),
    child: () => log,
  })
  const tracing = createOtlpTracing({
    otlpEndpoint: `http://127.0.0.1:${port}`,
    serviceName: 'x',
    log,
  })
  for (let i = 0; i < 1000; i += 1) tracing.startSpan('x', { kind: 'server' }).end()
  await tracing.shutdown()
  const message = 'the collector did not take spans'
  t.match(lines, [{ level: 'warn', message, error: /Unauthorized/ }])
  t.equal(lines.length, 1)
})

await t.test('an error marks its span and says where it happened', async (t) => {
  const { endpoint, spans } = await startCollector(t)
  const tracing = createOtlpTracing({ otlpEndpoint: endpoint, serviceName: 'tutti-step' })
  const span = tracing.startSpan('execute', { kind: 'internal' })
  span.recordError(
    new ServeError('ENGINE_FAILED', 'broke', { details: { model: 'ocr', step: 'read' } }),
  )
  span.end()
  await tracing.shutdown()
  t.match(spans(), [
    {
      status: { code: 2, message: 'broke' },
      attributes: [{ key: 'error.type', value: 'ENGINE_FAILED' }],
      events: [
        {
          name: 'exception',
          attributes: [
            { key: 'exception.type', value: 'ENGINE_FAILED' },
            { key: 'exception.message', value: 'broke' },
            { key: 'rpc.grpc.status', value: 'INTERNAL' },
            { key: 'tutti.model', value: 'ocr' },
            { key: 'tutti.step', value: 'read' },
          ],
        },
      ],
    },
  ])
  t.notOk(spans()[0]?.parentSpanId)
})

await t.test(
  'a span takes attributes and events until it ends, and 128 events at most',
  async (t) => {
    const { endpoint, spans } = await startCollector(t)
    const tracing = createOtlpTracing({ otlpEndpoint: endpoint, serviceName: 'x' })
    const span = tracing.startSpan('infer', { kind: 'server', attributes: { a: 1 } })
    span.setAttributes({ b: 'two' })
    for (let i = 0; i < 200; i += 1) span.addEvent('step skipped', { 'tutti.step': `s${i}` })
    span.end()
    span.setAttributes({ late: true })
    await tracing.shutdown()
    const [sent] = spans()
    t.same(sent?.attributes, [
      { key: 'a', value: 1 },
      { key: 'b', value: 'two' },
    ])
    t.equal(sent?.events.length, 128)
    t.match(sent?.events[0], { name: 'step skipped', attributes: [{ key: 'tutti.step' }] })
  },
)

await t.test("a caller's choice not to sample is kept and passed on", async (t) => {
  const { endpoint, spans } = await startCollector(t)
  const tracing = createOtlpTracing({ otlpEndpoint: endpoint, serviceName: 'x' })
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00'
  const span = tracing.startSpan('infer', { parent: { traceparent }, kind: 'server' })
  t.match(span.traceParent?.traceparent, /^00-0af7651916cd43dd8448eb211c80319c-[0-9a-f]{16}-00$/)
  t.equal(span.sampledTraceId, undefined)
  span.addPart('compute', 0, 1)
  span.end()
  await tracing.shutdown()
  t.same(spans(), [])
})

await t.test('a ratio of 0 samples only what callers sample', async (t) => {
  const { endpoint, spans } = await startCollector(t)
  const tracing = createOtlpTracing({ otlpEndpoint: endpoint, serviceName: 'x', sampleRatio: 0 })
  tracing.startSpan('root', { kind: 'server' }).end()
  tracing.startSpan('child', { kind: 'server', parent: PARENT }).end()
  await tracing.shutdown()
  t.match(spans(), [{ name: 'child' }])
})

await t.test('a parent that is not valid begins a new trace', async (t) => {
  const { endpoint } = await startCollector(t)
  const tracing = createOtlpTracing({ otlpEndpoint: endpoint, serviceName: 'x' })
  const span = tracing.startSpan('infer', { kind: 'server', parent: { traceparent: 'junk' } })
  t.match(span.traceParent?.traceparent, /^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/)
  span.end()
  await tracing.shutdown()
})

await t.test('without an endpoint the incoming context passes through', async (t) => {
  for (const endpoint of [undefined, '']) {
    const tracing = await openTracing({ otlpEndpoint: endpoint, serviceName: 'x' })
    t.equal(tracing.isEnabled, false)
    const span = tracing.startSpan('infer', { kind: 'server', parent: PARENT })
    t.equal(span.traceParent, PARENT)
    t.equal(span.sampledTraceId, undefined)
    span.addPart('compute', 0, 1)
    span.addEvent('step skipped', {})
    span.setAttributes({})
    span.recordError(new ServeError('INTERNAL', 'c'))
    span.end()
    t.equal(tracing.startSpan('root', { kind: 'server' }).traceParent, undefined)
    await tracing.shutdown()
  }
})

await t.test('a traceparent is read as the standard says', async (t) => {
  const trace = '0af7651916cd43dd8448eb211c80319c'
  const span = 'b7ad6b7169203331'
  const cases: readonly [string, object | undefined][] = [
    [`00-${trace}-${span}-01`, { traceId: trace, spanId: span, traceFlags: 1 }],
    [`cc-${trace}-${span}-03-more`, { traceId: trace, spanId: span, traceFlags: 3 }],
    [`00-${trace}-${span}-01-more`, undefined],
    [`ff-${trace}-${span}-01`, undefined],
    [`00-${'0'.repeat(32)}-${span}-01`, undefined],
    [`00-${trace}-${'0'.repeat(16)}-01`, undefined],
    [`00-${trace.toUpperCase()}-${span}-01`, undefined],
    ['', undefined],
  ]
  for (const [text, want] of cases) t.same(parseTraceParent(text), want, text)
})
