import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { until } from '@tutti/chassis/testing'
import t, { type Test } from 'tap'
import { ask, openClient } from './grpc-client.ts'
import { scrape } from './metrics.ts'
import { restCall } from './rest-call.ts'
import { inferPath, JSON_LENGTH, restBody, restInfer, restOutputs } from './rest-infer.ts'
import { type Serving, serve } from './serving.ts'
import { copyModels, instances } from './temp-repository.ts'
import { fp32, row, slowInputs, type Tensor } from './tensors.ts'

t.setTimeout(600_000)

const IDENTITY = 'identity_fp32_nonbatch'
/** A second or so on a core: longer than a few refusals take. */
const LONG = 2_500

async function serveModels(
  test: Test,
  models: readonly string[],
  ...flags: readonly string[]
): Promise<Serving> {
  const append = models.includes('slow') ? { slow: instances(1) } : {}
  return await serve(test, { repositories: [await copyModels(test, models, { append })], flags })
}

function ofBytes(bytes: number): readonly Tensor[] {
  return [fp32('x', new Float32Array(bytes / 4))]
}

const untilPending = (serving: Serving, count: number, model = 'slow'): Promise<true> =>
  until(`${count} requests wait`, async () => {
    const metrics = await scrape(serving)
    return metrics.value('nv_inference_pending_request_count', { model }) === count
  })

async function openSocket(test: Test, port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  test.teardown(() => socket.destroy())
  // A reset is an end like any other here.
  socket.on('error', () => {})
  await once(socket, 'connect')
  return socket
}

await t.test('a message over the bound is refused with both sizes', async (t) => {
  const bound = 100_000
  const serving = await serveModels(
    t,
    [IDENTITY],
    `--grpc-max-message-size=${bound}`,
    `--http-max-input-size=${bound}`,
  )
  const client = openClient(t, serving)
  await t.rejects(client.infer({ modelName: IDENTITY, inputs: ofBytes(200_000) }), {
    code: 'RESOURCE_EXHAUSTED',
    reason: 'MESSAGE_TOO_LARGE',
    message: /message has 200\d\d\d bytes, want at most 100000/,
  })
  const { body, jsonBytes } = restBody(ofBytes(200_000))
  const length = { [JSON_LENGTH]: String(jsonBytes) }
  for (const [what, answer] of [
    ['announced', await restInfer(serving, IDENTITY, ofBytes(200_000))],
    [
      'compressed',
      await restCall(serving.httpPort, 'POST', inferPath(IDENTITY), {
        body: gzipSync(body),
        headers: { ...length, 'content-encoding': 'gzip' },
      }),
    ],
  ] as const) {
    t.equal(answer.status, 413, what)
    t.equal(answer.headers['tutti-error-reason'], 'MESSAGE_TOO_LARGE', what)
    t.match(answer.json(), {
      error: /request body of \d+ bytes or more exceeds the maximum allowed value of 100000 bytes/,
    })
  }
  const fits = ofBytes(90_000)
  const { outputs } = await client.infer({ modelName: IDENTITY, inputs: fits })
  t.equal(outputs[0]?.data.byteLength, 90_000, 'what fits passes over gRPC')
  const answer = restOutputs(await restInfer(serving, IDENTITY, fits))
  t.equal(answer.get('y')?.byteLength, 90_000, 'and over HTTP')
})

await t.test('requests over the bound are refused at once, and let in again later', async (t) => {
  const serving = await serveModels(t, ['slow'], '--max-inflight-requests=2')
  const client = openClient(t, serving)
  const inputs = slowInputs(LONG)
  const order: string[] = []
  const accepted = [1, 2].map(async () => {
    await client.infer({ modelName: 'slow', inputs })
    order.push('answered')
  })
  await untilPending(serving, 1)
  await t.rejects(client.infer({ modelName: 'slow', inputs }), {
    code: 'RESOURCE_EXHAUSTED',
    reason: 'OVERLOADED',
    message: 'server is overloaded: 2 requests are in flight, the bound is 2',
  })
  order.push('refused over gRPC')
  const answer = await restInfer(serving, 'slow', inputs)
  t.equal(answer.status, 503)
  t.equal(answer.headers['tutti-error-reason'], 'OVERLOADED')
  order.push('refused over HTTP')
  t.equal((await ask(client, 'ServerReady')).ready, true, 'other calls are answered')
  await Promise.all(accepted)
  t.same(order, ['refused over gRPC', 'refused over HTTP', 'answered', 'answered'])
  await client.infer({ modelName: 'slow', inputs: slowInputs(1) })
  t.equal((await restInfer(serving, 'slow', slowInputs(1))).status, 200)
})

await t.test('bytes over the bound are refused, of half requests and of answers too', async (t) => {
  const serving = await serveModels(t, [IDENTITY], '--max-inflight-bytes=1400000')
  const client = openClient(t, serving)
  const infer = (bytes: number): Promise<string> =>
    client.infer({ modelName: IDENTITY, inputs: ofBytes(bytes) }).then(
      () => 'OK',
      ({ code, reason }) => `${code} ${reason}`,
    )
  t.equal(await infer(1_500_000), 'RESOURCE_EXHAUSTED OVERLOADED', 'one request alone')
  t.equal(await infer(1_200_000), 'RESOURCE_EXHAUSTED OVERLOADED', 'its answer alone')
  t.equal(await infer(600_000), 'OK')

  // Whoever comes second is refused, and which one that is shows only in the answer.
  const holder = await until('the half-sent body came first', async () => {
    const socket = await openSocket(t, serving.httpPort)
    const length = 'content-length: 900000'
    socket.write(`POST ${inferPath(IDENTITY)} HTTP/1.1\r\nhost: x\r\n${length}\r\n\r\n`)
    socket.write(Buffer.alloc(600_000))
    await scrape(serving)
    if ((await infer(600_000)) === 'RESOURCE_EXHAUSTED OVERLOADED') return socket
    socket.destroy()
    return undefined
  })
  const refused = await restInfer(serving, IDENTITY, ofBytes(600_000))
  t.equal(refused.status, 503)
  t.match(refused.json(), {
    error:
      /^server is overloaded: \d+ bytes of requests and answers are in flight, \d+ more would go over, the bound is 1400000$/,
  })
  t.equal(await infer(100_000), 'OK', 'what fits beside it passes')
  holder.destroy()
  await until('its bytes are given back', async () => (await infer(600_000)) === 'OK')
})

await t.test('connections over the bound are refused until another one closes', async (t) => {
  const serving = await serveModels(t, [IDENTITY], '--max-connections=2')
  const isServed = (): Promise<boolean> =>
    restInfer(serving, IDENTITY, ofBytes(4)).then(({ status }) => status === 200)
  const http = [
    await openSocket(t, serving.httpPort),
    await openSocket(t, serving.httpPort),
  ] as const
  const third = await openSocket(t, serving.httpPort)
  const [text] = await once(third, 'data')
  t.match(String(text), /^HTTP\/1\.1 503 .*OVERLOADED.*too many connections/s)
  http[0].destroy()
  await until('there is a place for an HTTP connection', isServed)

  const held = [
    await openSocket(t, serving.grpcPort),
    await openSocket(t, serving.grpcPort),
  ] as const
  await t.rejects(
    openClient(t, serving).infer({ modelName: IDENTITY, inputs: ofBytes(4) }),
    { code: 'UNAVAILABLE' },
    'a third gRPC connection is dropped',
  )
  held[0].destroy()
  await until('there is a place for a gRPC connection', () =>
    openClient(t, serving)
      .infer({ modelName: IDENTITY, inputs: ofBytes(4) })
      .then(
        () => true,
        () => false,
      ),
  )
  t.ok(
    serving.process.lines.some((line) => line.includes('"level":"warn"')),
    'the log says so',
  )
})

await t.test('a queue over the server’s bound refuses, and counts it', async (t) => {
  const serving = await serveModels(t, ['slow'], '--max-queue-size=2')
  const client = openClient(t, serving)
  const request = { modelName: 'slow', inputs: slowInputs(LONG) }
  const accepted = [1, 2, 3].map(() => client.infer(request))
  await untilPending(serving, 2)
  const message = "2 requests wait for the model, which is the server's bound"
  await t.rejects(client.infer({ ...request, id: 'late' }), {
    code: 'RESOURCE_EXHAUSTED',
    reason: 'OVERLOADED',
    message: `[request id: late] ${message}`,
    details: { model: 'slow' },
  })
  const answer = await restInfer(serving, 'slow', slowInputs(LONG))
  t.equal(answer.status, 503)
  t.match(answer.json(), { error: `[request id: <id_unknown>] ${message}` })
  t.equal((await Promise.all(accepted)).length, 3, 'who was in the queue is answered')
  const metrics = await scrape(serving)
  const rejected = { model: 'slow', reason: 'REJECTED' }
  t.equal(metrics.value('nv_inference_request_failure', rejected), 2)
  t.equal(metrics.value('nv_inference_exec_count', { model: 'slow' }), 3)
})

await t.test(
  'a queue over the bound of its config refuses with Triton’s code and text',
  async (t) => {
    const repository = await copyModels(t, ['add_one_batch'])
    const config = join(repository, 'add_one_batch', 'config.pbtxt')
    const written = await readFile(config, 'utf8')
    // Two requests wait for company that the bound keeps away.
    const rules =
      'max_queue_delay_microseconds: 600000000 default_queue_policy { max_queue_size: 2 }'
    await writeFile(config, written.replace(/max_queue_delay_microseconds: \d+/, rules))
    const serving = await serve(t, { repositories: [repository] })
    const client = openClient(t, serving)
    const leaving = new AbortController()
    const infer = (signal?: AbortSignal): Promise<unknown> =>
      client.infer(
        { modelName: 'add_one_batch', inputs: [row('X')] },
        signal === undefined ? {} : { signal },
      )
    const waiting = Promise.allSettled([infer(leaving.signal), infer(leaving.signal)])
    await untilPending(serving, 2, 'add_one_batch')
    await t.rejects(infer(), {
      code: 'UNAVAILABLE',
      reason: 'QUEUE_FULL',
      message: '[request id: <id_unknown>] Exceeds maximum queue size',
    })
    const answer = await restInfer(serving, 'add_one_batch', [row('X')])
    t.equal(answer.status, 503)
    t.match(answer.json(), { error: '[request id: <id_unknown>] Exceeds maximum queue size' })
    leaving.abort()
    await waiting
    await untilPending(serving, 0, 'add_one_batch')
  },
)

await t.test('64 MB pass, and small requests are answered meanwhile', async (t) => {
  const serving = await serveModels(t, ['big_identity', IDENTITY])
  const values = Float32Array.from({ length: 2048 * 2731 * 3 }, (_, i) => i % 9973)
  const x = fp32('x', values, [2048, 2731, 3])
  const events: string[] = []
  const big = openClient(t, serving)
    .infer({ modelName: 'big_identity', inputs: [x] })
    .finally(() => events.push('big'))
  const client = openClient(t, serving)
  while (!events.includes('big')) {
    await client.infer({ modelName: IDENTITY, inputs: ofBytes(64) })
    events.push('small')
  }
  const [y] = (await big).outputs
  t.ok(x.data.byteLength > 64 * 2 ** 20)
  t.ok(y !== undefined && Buffer.compare(x.data, y.data) === 0, 'every byte came back')
  t.ok(events.indexOf('big') > 0, `${events.indexOf('big')} small requests were answered before`)
})
