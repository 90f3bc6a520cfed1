import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { ask, openClient } from './grpc-client.ts'
import { scrape } from './metrics.ts'
import { restInfer } from './rest-infer.ts'
import { type Serving, serve } from './serving.ts'
import { grpcOutcome, keepWaiting, restOutcome, serveSlow, untilPending } from './slow-server.ts'
import { copyModels } from './temp-repository.ts'
import { fp32, row, slowInputs, type Tensor } from './tensors.ts'

t.setTimeout(600_000)

const IDENTITY = 'identity_fp32_nonbatch'

async function serveModels(
  test: Test,
  models: readonly string[],
  ...flags: readonly string[]
): Promise<Serving> {
  return await serve(test, { repositories: [await copyModels(test, models)], flags })
}

function ofBytes(bytes: number): readonly Tensor[] {
  return [fp32('x', new Float32Array(bytes / 4))]
}

async function openSocket(test: Test, port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  test.teardown(() => socket.destroy())
  // A reset is an end like any other here.
  socket.on('error', () => {})
  await once(socket, 'connect')
  return socket
}

await t.test(
  'what is over a bound of sizes or connections is refused, what fits passes',
  async (t) => {
    const serving = await serveModels(
      t,
      [IDENTITY],
      '--grpc-max-message-size=100000',
      '--http-max-input-size=100000',
      '--max-inflight-bytes=150000',
      '--max-connections=2',
    )
    const client = openClient(t, serving)
    const overBoth = async (bytes: number): Promise<readonly string[]> => {
      const inputs = ofBytes(bytes)
      // One after the other: together they would be over the bound of bytes in flight.
      const first = await grpcOutcome(client.infer({ modelName: IDENTITY, inputs }))
      return [first, await restOutcome(restInfer(serving, IDENTITY, inputs))]
    }
    const tooLarge = ['RESOURCE_EXHAUSTED MESSAGE_TOO_LARGE', '413 MESSAGE_TOO_LARGE']
    t.same(await overBoth(200_000), tooLarge)
    const overloaded = ['RESOURCE_EXHAUSTED OVERLOADED', '503 OVERLOADED']
    t.same(await overBoth(90_000), overloaded, 'with its answer')
    t.same(await overBoth(40_000), ['OK', '200 OK'])

    const silent = await openSocket(t, serving.httpPort)
    for (const _ of [1, 2]) await openSocket(t, serving.httpPort)
    if (!silent.resume().closed) await once(silent, 'close')
    t.equal((await restInfer(serving, IDENTITY, ofBytes(4))).status, 200)
    const silentToo = await openSocket(t, serving.grpcPort)
    await openSocket(t, serving.grpcPort)
    await openClient(t, serving).infer({ modelName: IDENTITY, inputs: ofBytes(4) })
    if (!silentToo.resume().closed) await once(silentToo, 'close')
    t.pass('for a third connection the first one ends')
  },
)

await t.test('requests over the bound are refused at once, and let in again later', async (t) => {
  const serving = await serveSlow(t, { flags: ['--max-inflight-requests=2'] })
  const client = openClient(t, serving)
  const inputs = slowInputs(1)
  const order: string[] = []
  const accepted = await keepWaiting(serving, 1, (rounds) => {
    order.length = 0
    return [1, 2].map(async () => {
      await client.infer({ modelName: 'slow', inputs: slowInputs(rounds) })
      order.push('answered')
    })
  })
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
  await client.infer({ modelName: 'slow', inputs })
  t.equal((await restInfer(serving, 'slow', inputs)).status, 200)
})

await t.test('a queue over the server’s bound refuses, and counts it', async (t) => {
  const serving = await serveSlow(t, { flags: ['--max-queue-size=2'] })
  const client = openClient(t, serving)
  let sent = 0
  const accepted = await keepWaiting(serving, 2, (rounds) => {
    sent += 3
    const request = { modelName: 'slow', inputs: slowInputs(rounds) }
    return [1, 2, 3].map(() => client.infer(request))
  })
  const message = "2 requests wait for the model, which is the server's bound"
  await t.rejects(client.infer({ modelName: 'slow', inputs: slowInputs(1), id: 'late' }), {
    code: 'RESOURCE_EXHAUSTED',
    reason: 'OVERLOADED',
    message: `[request id: late] ${message}`,
    details: { model: 'slow' },
  })
  const answer = await restInfer(serving, 'slow', slowInputs(1))
  t.equal(answer.status, 503)
  t.match(answer.json(), { error: `[request id: <id_unknown>] ${message}` })
  t.equal((await Promise.all(accepted)).length, 3, 'who was in the queue is answered')
  const metrics = await scrape(serving)
  const rejected = { model: 'slow', reason: 'REJECTED' }
  t.equal(metrics.value('nv_inference_request_failure', rejected), 2)
  t.equal(metrics.value('nv_inference_exec_count', { model: 'slow' }), sent)
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
