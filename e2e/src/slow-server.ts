import { until } from '@tutti/chassis/testing'
import type { Test } from 'tap'
import { scrape } from './metrics.ts'
import type { RestAnswer } from './rest-call.ts'
import { type Serving, serve } from './serving.ts'
import { copyModels, instances } from './temp-repository.ts'

/** Serves `slow` and `ens_slow`. By default there is one instance, so that requests wait for each other. */
export async function serveSlow(
  t: Test,
  o: { readonly instances?: number; readonly flags?: readonly string[] } = {},
): Promise<Serving> {
  const append = { slow: instances(o.instances ?? 1) }
  const repository = await copyModels(t, ['slow', 'ens_slow'], { append })
  return await serve(t, { repositories: [repository], flags: o.flags ?? [] })
}

/** How many requests to a model wait for an instance. */
async function countPending(serving: Serving, model: string): Promise<number | undefined> {
  const metrics = await scrape(serving)
  return metrics.value('nv_inference_pending_request_count', { model, version: '1' })
}

/** Waits until so many requests to a model wait for an instance. */
export function untilPending(serving: Serving, count: number, model = 'slow'): Promise<true> {
  return until(`${count} requests wait`, async () => (await countPending(serving, model)) === count)
}

/** Rounds of requests that are to be seen waiting: more, where a busy machine did not see the fewer. */
const ROUNDS = [2_000, 16_000, 128_000, 1_024_000]

/**
 * Sends requests to `slow`, and again longer ones if the first of them was answered before all of these were seen waiting.
 *
 * @param count - how many wait once all have come.
 * @param send - sends the requests, each of so many rounds.
 */
export async function keepWaiting<T>(
  serving: Serving,
  count: number,
  send: (rounds: number) => readonly Promise<T>[],
): Promise<readonly Promise<T>[]> {
  for (const rounds of ROUNDS) {
    const sent = send(rounds)
    let isOver = false
    const first = Promise.race(sent).finally(() => {
      isOver = true
    })
    first.catch(() => {})
    const isSeen = await until(`${count} requests wait`, async () =>
      (await countPending(serving, 'slow')) === count ? 'waiting' : isOver && 'over',
    )
    if (isSeen === 'waiting') return sent
    await Promise.all(sent)
  }
  throw new Error(`never did ${count} requests wait`)
}

/** How a request over gRPC ends: `OK`, or code and reason. */
export function grpcOutcome(answer: Promise<unknown>): Promise<string> {
  return answer.then(
    () => 'OK',
    ({ code, reason }) => `${code} ${reason}`,
  )
}

/** How a request over REST ends: the status with `OK` or its reason, or what became of the connection. */
export function restOutcome(answer: Promise<RestAnswer>): Promise<string> {
  return answer.then(
    ({ status, headers }) => `${status} ${String(headers['tutti-error-reason'] ?? 'OK')}`,
    ({ code }) => String(code),
  )
}
