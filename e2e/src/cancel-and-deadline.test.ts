import { until } from '@tutti/chassis/testing'
import type { InferenceClient } from '@tutti/protocol/client'
import t, { type Test } from 'tap'
import { openClient, statisticsOf } from './grpc-client.ts'
import { type Scrape, scrape } from './metrics.ts'
import { restInfer } from './rest-infer.ts'
import type { Serving } from './serving.ts'
import { serveSlow, untilPending } from './slow-server.ts'
import { slowInputs, toFloats } from './tensors.ts'

t.setTimeout(600_000)

/** Rounds that take longer than it takes to send a flood, cancel it and look at the metrics, where nothing else runs. */
const LONG = 1_500
const SHORT = 400
const SLOW = { model: 'slow', version: '1' }
const CANCELED = { ...SLOW, reason: 'CANCELED' }
const VERBOSE = ['--log-verbose=1']
const DROPPED = 'result dropped, its caller has left'

const countLines = ({ process }: Serving, message: string): number =>
  process.lines.filter((line) => line.includes(`"message":"${message}"`)).length

/** Everything was answered and nothing waits: SIGTERM ends the server with code 0 without having to wait for anyone. */
async function endsWithNothingInFlight(t: Test, serving: Serving): Promise<void> {
  await untilPending(serving, 0)
  const { code } = await serving.process.stop()
  t.equal(code, 0, 'the server ends well')
  t.ok(
    serving.process.lines.some((line) => line.includes('"inFlight":0,"message":"step draining"')),
    'nothing was in flight when it ended',
  )
}

/** Forty requests that wait behind three; undefined if one of the three was done before all of the forty had come. */
async function flood(t: Test, rounds: number) {
  const serving = await serveSlow(t, { instances: 2, flags: VERBOSE })
  const client = openClient(t, serving)
  // They take both instances and the first place in the queue.
  const running = [1, 2, 3].map(() =>
    client.infer({ modelName: 'slow', inputs: slowInputs(rounds) }),
  )
  const leaving = new AbortController()
  const { signal } = leaving
  const line = async () => {
    await untilPending(serving, 1)
    const queued = Array.from({ length: 40 }, (_, i) =>
      i % 2 === 0
        ? client.infer({ modelName: 'slow', inputs: slowInputs(rounds) }, { signal })
        : restInfer(serving, 'slow', slowInputs(rounds), { signal }),
    )
    const outcomes = Promise.allSettled(queued)
    await untilPending(serving, 41)
    return { serving, client, running, leaving, outcomes }
  }
  const held = await Promise.race([line(), Promise.any(running).then(() => undefined)])
  if (held !== undefined) return held
  leaving.abort()
  await serving.process.stop('SIGKILL')
  return undefined
}

await t.test('a client that cancels or disconnects takes its queued work with it', async (t) => {
  // A machine that is busy takes as long to send them as another one takes to execute.
  const flooded =
    (await flood(t, LONG)) ?? (await flood(t, 8 * LONG)) ?? (await flood(t, 64 * LONG))
  if (flooded === undefined) throw new Error('never did all wait')
  const { serving, client, running, leaving, outcomes } = flooded
  leaving.abort()
  for (const [i, outcome] of (await outcomes).entries()) {
    const code = i % 2 === 0 ? 'CANCELLED' : 'ABORT_ERR'
    t.match(outcome, { status: 'rejected', reason: { code } })
  }
  for (const answer of await Promise.all(running)) t.equal(answer.outputs.length, 1)

  const metrics = await scrape(serving)
  t.equal(metrics.value('nv_inference_request_failure', CANCELED), 40, 'each counts as cancelled')
  t.equal(metrics.value('nv_inference_request_success', SLOW), 3)
  t.equal(metrics.value('nv_inference_exec_count', SLOW), 3, 'none of them was executed')
  const { execution_count, inference_stats } = await statisticsOf(client, 'slow')
  t.equal(execution_count, '3')
  t.equal(inference_stats?.fail?.count, '40')
  await endsWithNothingInFlight(t, serving)
})

/** Leaves one of two calls that run while a third one waits, and how all ended; undefined if they were done before that was so. */
async function abandonOne(t: Test, rounds: number) {
  const serving = await serveSlow(t, { instances: 2, flags: VERBOSE })
  const client = openClient(t, serving)
  const leaving = new AbortController()
  const events: string[] = []
  const infer = (name: string, o: { signal?: AbortSignal } = {}): Promise<void> =>
    client.infer({ modelName: 'slow', inputs: slowInputs(rounds) }, o).then(
      ({ outputs: [y] }) => void events.push(`${name}: ${y === undefined ? '' : toFloats(y)[0]}`),
      ({ code }) => void events.push(`${name}: ${code}`),
    )
  const outcomes = [
    infer('abandoned', { signal: leaving.signal }),
    infer('running'),
    infer('queued'),
  ]
  const isWaiting = await Promise.race([
    untilPending(serving, 1),
    Promise.any(outcomes).then(() => false),
  ])
  leaving.abort()
  await Promise.all(outcomes)
  if (isWaiting) return { serving, events }
  await serving.process.stop('SIGKILL')
  return undefined
}

await t.test('a running call that is cancelled is abandoned, and the server goes on', async (t) => {
  const abandoned =
    (await abandonOne(t, LONG)) ??
    (await abandonOne(t, 8 * LONG)) ??
    (await abandonOne(t, 64 * LONG))
  if (abandoned === undefined) throw new Error('never did one wait')
  const { serving, events } = abandoned
  t.equal(events[0], 'abandoned: CANCELLED', 'the one who left is answered first')
  t.same(events.slice(1).toSorted(), ['queued: 1', 'running: 1'], 'the others get their answers')

  await until('the abandoned result came', () => countLines(serving, DROPPED) === 1)
  const metrics = await scrape(serving)
  t.equal(metrics.value('nv_inference_request_failure', CANCELED), 1)
  t.equal(metrics.value('nv_inference_request_success', SLOW), 2)
  t.equal(metrics.value('nv_inference_exec_count', SLOW), 3)
  await endsWithNothingInFlight(t, serving)
})

/** An ensemble request with a deadline over each protocol, and how it ended there. */
function askBoth(
  serving: Serving,
  client: InferenceClient,
  rounds: number,
  timeoutMs: number,
): Promise<readonly unknown[]> {
  const inputs = slowInputs(rounds)
  const headers = { 'tutti-timeout-ms': String(timeoutMs) }
  return Promise.all([
    client.infer({ modelName: 'ens_slow', inputs }, { timeoutMs }).then(
      () => 'OK',
      ({ code }) => code,
    ),
    restInfer(serving, 'ens_slow', inputs, { headers }).then(({ status }) => status),
  ])
}

const ENSEMBLE = { model: 'ens_slow', version: '1' }

/** Checks what the metrics say after the time of two ensemble requests was over. */
function ensemblesFailed(t: Test, metrics: Scrape): void {
  t.equal(metrics.value('nv_inference_request_success', ENSEMBLE), 0)
  t.equal(metrics.value('nv_inference_request_failure', { ...ENSEMBLE, reason: 'CANCELED' }), 2)
  t.equal(metrics.value('nv_inference_request_failure', { ...ENSEMBLE, reason: 'OTHER' }), 0)
  t.equal(metrics.value('nv_inference_pending_request_count', ENSEMBLE), 0)
}

await t.test('a deadline ends an ensemble while its first step runs', async (t) => {
  const serving = await serveSlow(t, { instances: 2, flags: VERBOSE })
  const client = openClient(t, serving)
  // Long enough for both to begin on a busy machine, and not to end before the deadline on a fast one.
  t.same(await askBoth(serving, client, 8 * LONG, 1000), ['DEADLINE_EXCEEDED', 504])
  await until('the abandoned results came', () => countLines(serving, DROPPED) === 2)
  const metrics = await scrape(serving)
  t.equal(metrics.value('nv_inference_exec_count', SLOW), 2, 'no second step began')
  t.equal(metrics.value('nv_inference_request_failure', CANCELED), 2)
  ensemblesFailed(t, metrics)
  await endsWithNothingInFlight(t, serving)
})

/**
 * Two ensemble requests, whose first steps and a flood behind them wait for one that runs so many rounds: the flood holds the second
 * steps up. Undefined if the one was done before all of them waited.
 */
async function holdUp(t: Test, rounds: number, timeoutMs: number) {
  const serving = await serveSlow(t, { instances: 1, flags: VERBOSE })
  const client = openClient(t, serving)
  const leaving = new AbortController()
  const infer = (rounds: number): Promise<unknown> =>
    client.infer({ modelName: 'slow', inputs: slowInputs(rounds) }, { signal: leaving.signal })
  const first = infer(rounds)
  const last = infer(SHORT)
  const line = async () => {
    await untilPending(serving, 1)
    const ended = askBoth(serving, client, 1, timeoutMs)
    // They fail where the server is stopped, since they came too late.
    ended.catch(() => {})
    await untilPending(serving, 3)
    const flood = Promise.allSettled(Array.from({ length: 200 }, () => infer(LONG)))
    await untilPending(serving, 203)
    return { serving, leaving, ended, flood }
  }
  const held = await Promise.race([line(), first.then(() => undefined)])
  if (held !== undefined) {
    await Promise.all([first, last])
    return held
  }
  leaving.abort()
  await Promise.allSettled([last])
  await serving.process.stop('SIGKILL')
  return undefined
}

await t.test('a deadline ends an ensemble whose second step waits', async (t) => {
  // The deadline is long after the first steps, and long before the end of the flood.
  const held =
    (await holdUp(t, LONG, 15_000)) ??
    (await holdUp(t, 4 * LONG, 15_000)) ??
    (await holdUp(t, 16 * LONG, 30_000))
  if (held === undefined) throw new Error('never did all wait')
  const { serving, leaving, ended, flood } = held
  t.same(await ended, ['DEADLINE_EXCEEDED', 504])
  leaving.abort()
  await flood
  const metrics = await scrape(serving)
  t.equal(metrics.value('tutti_step_compute_seconds_count', { step: 'slow#0' }), 2)
  t.equal(metrics.value('tutti_step_compute_seconds_count', { step: 'slow#1' }), 0)
  ensemblesFailed(t, metrics)
  await endsWithNothingInFlight(t, serving)
})
