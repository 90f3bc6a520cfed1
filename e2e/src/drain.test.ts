import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { openClient } from './grpc-client.ts'
import { startLoad } from './load.ts'
import { scrape } from './metrics.ts'
import { restCall } from './rest-call.ts'
import { restInfer } from './rest-infer.ts'
import { type Serving, serve } from './serving.ts'
import { grpcOutcome, keepWaiting, restOutcome, serveSlow, untilPending } from './slow-server.ts'
import { copyModels } from './temp-repository.ts'
import { slowInputs } from './tensors.ts'

t.setTimeout(600_000)

const MEBIBYTE = 1024 * 1024
/** Rounds that no test waits for. */
const ENDLESS = 10_000_000

/** Sends requests over both protocols, each of so many rounds. */
function sendFour(t: Test, serving: Serving, rounds: number): readonly Promise<string>[] {
  const client = openClient(t, serving)
  const inputs = slowInputs(rounds)
  return [1, 2, 3, 4].map((i) =>
    i % 2 === 0
      ? restOutcome(restInfer(serving, 'slow', inputs))
      : grpcOutcome(client.infer({ modelName: 'slow', inputs })),
  )
}

/** Sends requests that keep the one instance busy until the server gives up; resolves when all but the first one wait. */
async function occupyForEver(t: Test, serving: Serving): Promise<readonly Promise<string>[]> {
  const outcomes = sendFour(t, serving, ENDLESS)
  await untilPending(serving, 3)
  return outcomes
}

const isReady = ({ httpPort }: Serving): Promise<string> =>
  restOutcome(restCall(httpPort, 'GET', '/v2/health/ready'))

const hasLine = ({ process }: Serving, message: string): Promise<string> =>
  process.waitForLine((line) => line.includes(`"message":"${message}"`))

/** Looks for the process and for all of its group, which is named after it. */
function isAlive(pid: number): boolean {
  return [pid, -pid].some((id) => {
    try {
      process.kill(id, 0)
      return true
    } catch {
      return false
    }
  })
}

await t.test('SIGTERM under load: everything accepted is answered, the rest refused', async (t) => {
  const repository = await copyModels(t, ['big_identity', 'versioned', 'ens_versioned'])
  const serving = await serve(t, { repositories: [repository] })
  const load = startLoad(t, serving, { clients: 8, bytes: 2 * MEBIBYTE })
  await load.untilEachHas(2)
  const before = load.complete
  serving.process.kill('SIGTERM')
  t.same(await load.ended, [], 'every answer was whole and right, or a clean refusal')
  t.same(await serving.process.exited, { code: 0, signal: null })
  t.ok(load.complete > before, 'requests that were in flight at SIGTERM were answered')
  t.notOk(isAlive(serving.process.pid), 'no process is left')
})

await t.test(
  'while the server drains it is not ready, refuses, and still answers metrics',
  async (t) => {
    const serving = await serveSlow(t)
    const outcomes = await keepWaiting(serving, 3, (rounds) => sendFour(t, serving, rounds))
    const late = openClient(t, serving)
    t.equal(await isReady(serving), '200 OK')
    const seen: string[] = []
    const answered = Promise.all(outcomes).then(() => seen.push('answered'))
    serving.process.kill('SIGTERM')
    await hasLine(serving, 'draining')
    seen.push(`ready: ${await isReady(serving)}`)
    seen.push(`REST: ${await restOutcome(restInfer(serving, 'slow', slowInputs(1)))}`)
    await t.rejects(late.infer({ modelName: 'slow', inputs: slowInputs(1) }), {
      code: 'UNAVAILABLE',
    })
    const metrics = await scrape(serving)
    t.equal(metrics.value('nv_inference_request_failure', { model: 'slow', reason: 'OTHER' }), 0)
    await answered
    t.same(seen, ['ready: ECONNREFUSED', 'REST: ECONNREFUSED', 'answered'])
    t.same(await Promise.all(outcomes), ['OK', '200 OK', 'OK', '200 OK'])
    t.same(await serving.process.exited, { code: 0, signal: null })
    t.notOk(isAlive(serving.process.pid))
  },
)

await t.test('when the grace period is over, what is left is told so', async (t) => {
  const serving = await serveSlow(t, { flags: ['--exit-timeout-secs=1'] })
  const outcomes = await occupyForEver(t, serving)
  serving.process.kill('SIGTERM')
  t.same(await Promise.all(outcomes), [
    'UNAVAILABLE SERVER_STOPPING',
    '503 SERVER_STOPPING',
    'UNAVAILABLE SERVER_STOPPING',
    '503 SERVER_STOPPING',
  ])
  // Not all was answered; but it is no abort, although the engine is still busy.
  t.same(await serving.process.exited, { code: 1, signal: null })
  t.notOk(isAlive(serving.process.pid))
})

await t.test('a second SIGTERM ends the server at once', async (t) => {
  const serving = await serveSlow(t)
  const outcomes = await occupyForEver(t, serving)
  serving.process.kill('SIGTERM')
  await hasLine(serving, 'draining')
  // One that comes sooner counts as the same.
  await sleep(300)
  serving.process.kill('SIGTERM')
  t.same(await serving.process.exited, { code: 143, signal: null })
  t.notOk((await Promise.all(outcomes)).includes('OK'), 'no client got an answer that was not made')
  t.notOk(isAlive(serving.process.pid))
})

await t.test('a call that was abandoned holds the end up for a bounded time', async (t) => {
  const serving = await serveSlow(t)
  const client = openClient(t, serving)
  const leaving = new AbortController()
  const { signal } = leaving
  const abandoned = client.infer({ modelName: 'slow', inputs: slowInputs(ENDLESS) }, { signal })
  const waiting = client.infer({ modelName: 'slow', inputs: slowInputs(1) }, { signal })
  await untilPending(serving, 1)
  leaving.abort()
  await Promise.allSettled([abandoned, waiting])
  serving.process.kill('SIGTERM')
  await hasLine(serving, 'drained')
  t.pass('no client waits for an answer, so the drain is over')
  // No abort: the engine's thread is still busy then.
  t.same(await serving.process.exited, { code: 0, signal: null })
  t.notOk(isAlive(serving.process.pid))
})
