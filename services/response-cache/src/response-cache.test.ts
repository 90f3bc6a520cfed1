import { parseFlags, silentLogger, systemClock } from '@tutti/chassis'
import { createManualClock } from '@tutti/chassis/testing'
import { ServeError } from '@tutti/errors'
import { CacheStatistics, ServerMetrics, StatisticsRecorder } from '@tutti/telemetry'
import type { InferRequest, NamedTensor } from '@tutti/tensor'
import { floats, RecordedResponses, requestContext } from '@tutti/tensor/testing'
import t from 'tap'
import { CACHE_FLAGS, openCache } from './cache-flags.ts'
import { cacheKey } from './cache-key.ts'
import { LocalCache } from './local-cache.ts'
import { executeCached } from './model-cache.ts'
import type { CachedResponse, ResponseCache } from './response-cache.ts'

const clock = createManualClock()

function response(...outputs: NamedTensor[]): CachedResponse {
  return { outputs, parameters: new Map() }
}

function request(o: Partial<InferRequest> = {}): InferRequest {
  const inputs = [floats('a', [1, 2]), floats('b', [3])]
  return { context: requestContext(), inputs, requestedOutputs: [], ...o }
}

const context = (o: Parameters<typeof requestContext>[0]) => ({ context: requestContext(o) })

function keyOf(o: Partial<InferRequest> = {}, identity = 'm 1'): string {
  return cacheKey({ identity, outputs: ['x', 'y'], request: request(o) })
}

await t.test('the key is that of everything that the answer depends on', async (t) => {
  const [a, b] = [floats('a', [1, 2]), floats('b', [3])]
  const equal: Partial<InferRequest>[] = [
    {},
    { inputs: [b, a] },
    { requestedOutputs: ['x', 'y'] },
    { requestedOutputs: ['y', 'x'] },
    context({ id: 'q', priority: 2n, timeoutUs: 5n }),
  ]
  for (const one of equal) t.equal(keyOf(one), keyOf(), JSON.stringify(Object.keys(one)))
  const different = [
    keyOf(),
    keyOf({}, 'm 2'),
    keyOf({ requestedOutputs: ['x'] }),
    keyOf({ inputs: [a] }),
    keyOf({ inputs: [{ ...a, name: 'c' }, b] }),
    keyOf({ inputs: [{ ...a, shape: [2, 1] }, b] }),
    keyOf({ inputs: [{ ...a, datatype: 'INT32' }, b] }),
    keyOf({ inputs: [floats('a', [1, 4]), b] }),
    // The same bytes, otherwise divided.
    keyOf({ inputs: [floats('a', [1]), floats('b', [2, 3])] }),
    keyOf(context({ parameters: new Map([['k', { kind: 'string', value: 'true' }]]) })),
    keyOf(context({ parameters: new Map([['k', { kind: 'string', value: 'false' }]]) })),
    keyOf(context({ parameters: new Map([['l', { kind: 'string', value: 'true' }]]) })),
    keyOf(context({ parameters: new Map([['k', { kind: 'bool', value: true }]]) })),
    keyOf(context({ correlationId: 7n })),
    keyOf(context({ correlationId: '7' })),
    keyOf(context({ sequenceStart: true })),
  ]
  t.equal(new Set(different).size, different.length)
})

await t.test('a local cache keeps within its bytes what was used last', async (t) => {
  // Three entries of 4,000 bytes fit, with what they take beside.
  const cache = new LocalCache({ maxBytes: 15_000, clock })
  const big = floats(
    'x',
    Array.from({ length: 1000 }, () => 1),
  )
  for (const key of ['a', 'b', 'c']) cache.insert(key, response(big))
  t.same([cache.counts.held.entries, cache.counts.held.evictions], [3, 0])
  t.ok(cache.counts.held.utilization > 0.9 && cache.counts.held.utilization <= 1)
  cache.lookup('a')
  cache.insert('d', response(big))
  t.same(
    ['a', 'b', 'c', 'd'].map((key) => cache.lookup(key) !== undefined),
    [true, false, true, true],
  )
  t.match(cache.counts, { held: { entries: 3, evictions: 1 }, hits: 4, misses: 1 })
  cache.insert(
    'whole',
    response(
      floats(
        'x',
        Array.from({ length: 4000 }, () => 1),
      ),
    ),
  )
  t.equal(cache.lookup('whole'), undefined, 'larger than the cache')
  const large = new LocalCache({ maxBytes: 2 ** 30, clock })
  const data = new Uint8Array(64 * 2 ** 20)
  large.insert('long', response({ name: 'x', datatype: 'UINT8', shape: [data.length], data }))
  t.equal(large.lookup('long'), undefined, 'takes long to copy')
  t.equal(cache.counts.held.entries, 3, 'and nothing went for it')
  const before = cache.counts.held.utilization
  cache.insert('d', response(big))
  t.equal(cache.counts.held.utilization, before, 'an entry counts once')
  // Small entries are bounded too: by what they take beside their bytes.
  for (let i = 0; i < 1000; i++) cache.insert(`small ${i}`, response())
  t.ok(cache.counts.held.entries <= 30)
  await cache.close()
  t.same([cache.counts.held.entries, cache.counts.held.utilization], [0, 0])
})

await t.test('what is kept is a copy, in memory of its own', async (t) => {
  const cache = new LocalCache({ maxBytes: 10_000, clock })
  const lent = floats('x', [1, 2])
  const part = { ...lent, data: new Uint8Array(1_000_000).subarray(8, 16) }
  cache.insert('lent', response(lent))
  cache.insert('part', response(part))
  lent.data.fill(255)
  const [kept] = cache.lookup('lent')?.outputs ?? []
  t.same(kept, floats('x', [1, 2]))
  t.equal(cache.lookup('part')?.outputs[0]?.data.buffer.byteLength, 8)
})

/** Executes a request at a cache; what the model sends is given. */
function rig(cache: ResponseCache = new LocalCache({ maxBytes: 10_000, clock })) {
  const statistics = new CacheStatistics()
  const executions: string[] = []
  const cancelled = new AbortController()
  const infer = async (
    model: (sink: RecordedResponses) => void,
    o: { readonly mayKeep?: () => boolean } = {},
  ) => {
    const sink = new RecordedResponses()
    const execute = (to: unknown): void => {
      executions.push('')
      model(to as RecordedResponses)
    }
    const call = {
      cache,
      identity: 'm',
      request: request(),
      outputs: ['x'],
      observer: statistics,
      clock,
    }
    void executeCached({ ...call, sink, execute, signal: cancelled.signal, ...o })
    return sink.all
  }
  return { cache, statistics, executions, cancelled, infer }
}

const ANSWER = {
  index: 0,
  final: true,
  outputs: [floats('x', [5])],
  parameters: new Map([['p', { kind: 'int64', value: 1n } as const]]),
}

await t.test('a response is kept and answers the next equal request', async (t) => {
  const { statistics, executions, infer } = rig()
  await infer((sink) => sink.send(ANSWER))
  const [again] = await infer((sink) => sink.send(ANSWER))
  t.match(again, { ...ANSWER, times: { computeInferNs: 0 } })
  t.equal(executions.length, 1)
  t.same([statistics.misses.count, statistics.hits.count], [1, 1])
})

await t.test('errors, several responses and those that may not be kept are not', async (t) => {
  const models: Parameters<ReturnType<typeof rig>['infer']>[] = [
    [(sink) => sink.fail(new ServeError('ENGINE_FAILED', 'bad'))],
    [
      () => {
        throw new ServeError('OVERLOADED', 'full')
      },
    ],
    [
      (sink) => {
        sink.send({ ...ANSWER, final: false })
        sink.send({ ...ANSWER, index: 1 })
      },
    ],
    [(sink) => sink.send(ANSWER), { mayKeep: () => false }],
  ]
  for (const model of models) {
    const { statistics, executions, infer } = rig()
    const first = await infer(...model)
    t.same(await infer(...model), first)
    t.same([executions.length, statistics.hits.count], [2, 0])
  }
})

await t.test('a cache elsewhere may take its time, until the request is cancelled', async (t) => {
  const found = Promise.withResolvers<CachedResponse | undefined>()
  const elsewhere: ResponseCache = {
    isShared: true,
    counts: { hits: 0, misses: 0, lookupNs: 0, insertionNs: 0 },
    lookup: () => found.promise,
    insert: () => {},
    close: async () => {},
  }
  const { executions, cancelled, infer } = rig(elsewhere)
  const answered = infer((sink) => sink.send(ANSWER))
  t.equal(executions.length, 0)
  cancelled.abort(new ServeError('CANCELLED', 'gone'))
  t.same(await answered, [ANSWER], 'the model has it')
  const other = rig(elsewhere)
  const hit = other.infer((sink) => sink.send(ANSWER))
  found.resolve(response(floats('x', [9])))
  t.match(await hit, [{ outputs: [floats('x', [9])] }])
  t.same([executions.length, other.executions.length], [1, 0])
})

await t.test('a hit is a success that is neither an inference nor an execution', async (t) => {
  const latencies = { hasCounters: true, hasHistograms: false, quantiles: [0.5] }
  const metrics = new ServerMetrics({ latencies })
  const plain = new StatisticsRecorder({ name: 'plain', version: '1' })
  const recorder = new StatisticsRecorder({ name: 'm', version: '1', hasCache: true })
  const observer = metrics.cacheObserverOf(recorder)
  metrics.addModel(plain, { name: 'plain', version: '1' })
  t.notMatch(await metrics.render(), 'nv_cache')
  metrics.addModel(recorder, { name: 'm', version: '1' })
  observer?.hit({ requestNs: 9000, lookupNs: 4000 })
  observer?.hit({ requestNs: 9000, lookupNs: 4000 })
  observer?.missed(7000)
  t.match(recorder.snapshot(), {
    success: { count: 2n, ns: 18_000n },
    queue: { count: 2n, ns: 0n },
    computeInfer: { count: 0n },
    cacheHit: { count: 2n, ns: 8000n },
    cacheMiss: { count: 1n, ns: 7000n },
    inferenceCount: 0n,
    executionCount: 0n,
    lastInference: 0n,
  })
  const text = await metrics.render()
  for (const line of [
    'nv_inference_request_success{model="m",version="1"} 2',
    'nv_cache_num_hits_per_model{model="m",version="1"} 2',
    'nv_cache_hit_duration_per_model{model="m",version="1"} 8',
    'nv_cache_num_misses_per_model{model="m",version="1"} 1',
    'nv_cache_miss_duration_per_model{model="m",version="1"} 7',
    'nv_cache_hit_summary_per_model_count{model="m",version="1"} 2',
    'nv_cache_miss_summary_per_model_sum{model="m",version="1"} 7',
    'nv_inference_request_summary_us_count{model="m",version="1"} 2',
    'nv_inference_compute_infer_summary_us_count{model="m",version="1"} 0',
  ]) {
    t.ok(text.includes(`${line}\n`), line)
  }
  t.notMatch(text, /nv_cache[^\n]*plain/)
  metrics.removeModel(recorder)
  t.notMatch(await metrics.render(), 'nv_cache')
})

async function open(...words: string[]) {
  const metrics = new ServerMetrics()
  const { values } = parseFlags(CACHE_FLAGS, words)
  const opened = new AsyncDisposableStack()
  const shared = { clock: systemClock, metrics, log: silentLogger, env: {}, opened }
  return { metrics, cache: await openCache(values, shared) }
}

await t.test('flags open a cache as in Triton', async (t) => {
  for (const words of [[], ['--response-cache-byte-size=0']]) {
    t.equal((await open(...words)).cache, undefined)
  }
  for (const word of ['--cache-config=local,size=2048', '--response-cache-byte-size=2048']) {
    const { cache, metrics } = await open(word)
    cache?.insert('k', response())
    void cache?.lookup('k')
    const text = await metrics.render()
    for (const line of ['util 0.25', 'num_entries 1', 'num_hits 1', 'num_lookups 1']) {
      t.ok(text.includes(`nv_cache_${line}\n`), line)
    }
    t.match(text, '# TYPE nv_cache_num_evictions gauge')
    await cache?.close()
  }
  for (const [words, problem] of [
    [['--cache-config=local'], 'got no SETTING=VALUE after local,'],
    [['--cache-config=local,other=1'], 'local has no setting'],
    [['--cache-config=local,size=0'], 'got size=0'],
    [['--cache-config=local,size=1e9'], 'got size=1e9'],
    [['--cache-config=local,size=1', '--cache-config=local,size=2'], 'came twice'],
    [['--cache-config=local,bytes=1'], 'local has no setting "bytes", want size=BYTES'],
    [['--cache-config=other,host=h'], 'got cache "other", want local or redis'],
    [['--cache-config=password=secret'], 'got cache "password", want local or redis'],
    [['--cache-config=local,size=1', '--cache-config=redis,port=1'], 'got local and redis'],
    [['--cache-config=local,size=1', '--response-cache-byte-size=1'], 'want one of them'],
  ] as const) {
    await t.rejects(open(...words), { code: 'INVALID_ARGUMENT', message: new RegExp(problem) })
  }
})
