import t from 'tap'
import { formatMetrics } from '../metrics-text.ts'
import { type EndedRequest, RequestSeconds } from './request-seconds.ts'

const OK = { protocol: 'grpc', version: 1, code: 'OK', seconds: 0.002, traceId: undefined } as const

function open(...names: string[]) {
  const served = new Set(names)
  const seconds = new RequestSeconds((model, version) => served.has(model) && version !== '9')
  const observe = (model: string, o: Partial<EndedRequest> = {}): void =>
    seconds.observe({ ...OK, model, ...o })
  /** The counts by their labels. */
  const counts = () => {
    const all = seconds.family().series.filter(({ suffix }) => suffix === '_count')
    return all.map(({ labels, value }) => [...labels.map(([, text]) => text), value].join(' '))
  }
  return { served, seconds, observe, counts }
}

await t.test('requests count by model, version, protocol and code', (t) => {
  const { observe, counts } = open('m')
  observe('m')
  observe('m', { seconds: 7 })
  observe('m', { version: 2 })
  observe('m', { protocol: 'http', code: 'INVALID_ARGUMENT' })
  observe('/team::m')
  t.same(counts(), [
    'm 1 http INVALID_ARGUMENT 1',
    'm 1 grpc OK 2',
    'm 2 grpc OK 1',
    'm /team 1 grpc OK 1',
  ])
  t.end()
})

await t.test('a bucket names the last sampled request', (t) => {
  const { seconds, observe } = open('m')
  const traceId = 'ab'.repeat(16)
  observe('m', { seconds: 0.5, traceId })
  observe('m', { seconds: 200 })
  const text = formatMetrics([seconds.family()], { hasExemplars: true })
  const labels = 'model="m",version="1",protocol="grpc",code="OK"'
  t.match(text, `tutti_request_seconds_bucket{le="0.25",${labels}} 0\n`)
  t.match(text, `tutti_request_seconds_bucket{le="0.5",${labels}} 1 # {trace_id="${traceId}"} 0.5 `)
  t.match(text, `tutti_request_seconds_bucket{le="60",${labels}} 1\n`)
  t.match(text, `tutti_request_seconds_bucket{le="300",${labels}} 2\n`)
  t.match(text, `tutti_request_seconds_sum{${labels}} 200.5\n`)
  t.end()
})

await t.test('names that were never served here are one series', (t) => {
  const { served, observe, counts } = open('m')
  const refused = { version: undefined, code: 'NOT_FOUND' }
  for (let i = 0; i < 100; i += 1) observe(`guess${i}`, refused)
  observe('', { version: undefined, code: 'RESOURCE_EXHAUSTED' })
  // A client that may not call it, or that wants a version which is not there.
  observe('m', { version: undefined, code: 'PERMISSION_DENIED' })
  t.same(counts(), [
    '  grpc NOT_FOUND 100',
    '  grpc RESOURCE_EXHAUSTED 1',
    'm  grpc PERMISSION_DENIED 1',
  ])
  observe('m')
  served.clear()
  observe('m', refused)
  t.equal(counts().at(-2), 'm  grpc NOT_FOUND 1', 'one that was served keeps its name')
  t.end()
})

await t.test('series go when what they count is neither served nor asked for', (t) => {
  const { served, observe, counts } = open('a', 'b')
  for (const model of ['a', 'b']) observe(model)
  observe('b', { version: 9 })
  const all = ['a 1 grpc OK 1', 'b 1 grpc OK 1', 'b 9 grpc OK 1']
  t.same(counts(), all)
  served.delete('a')
  t.same(counts(), all, 'it was asked for until the time before')
  t.same(counts(), ['b 1 grpc OK 1'])
  observe('a', { version: undefined, code: 'NOT_FOUND' })
  t.same(counts()[1], '  grpc NOT_FOUND 1')
  t.end()
})

await t.test('series are bounded where nobody reads them', (t) => {
  const { served, observe, counts } = open()
  for (let i = 0; i < 10_000; i += 1) {
    served.add(`m${i}`)
    observe(`m${i}`)
    served.delete(`m${i}`)
  }
  t.ok(counts().length < 3000)
  t.end()
})
