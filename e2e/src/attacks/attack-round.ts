import { readdirSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Test } from 'tap'
import { residentBytes } from '../control-churn.ts'
import { servesRightBytes } from '../hostile.ts'
import { restCall } from '../rest-call.ts'
import { restInfer, restOutputs } from '../rest-infer.ts'
import { type Serving, serve } from '../serving.ts'
import { row, toFloats } from '../tensors.ts'
import { type AttackClass, attackOnce } from './attack-classes.ts'
import { attackedModels } from './attacked-models.ts'
import { askSmall } from './held-calls.ts'

const AT_A_TIME = 16
/** Bytes that a server keeps of those that it had to hold once: far below what any of the attacks would make it hold. */
const KEPT_BYTES = 400 * 2 ** 20
/** Log files and threads that start when they are needed. */
const KEPT_DESCRIPTORS = 16
const RETURN_MS = 60_000

/** A pool that clients who hold bytes fill. */
const SMALL_POOL_BYTES = 16 * 2 ** 20

/** Starts the server that is attacked. */
export async function serveTarget(t: Test, kind?: AttackClass): Promise<Serving> {
  return await serve(t, {
    repositories: await attackedModels(t),
    flags: [
      '--model-control-mode=explicit',
      '--load-model=*',
      '--max-connections=64',
      ...(kind === 'held' ? [`--max-inflight-bytes=${SMALL_POOL_BYTES}`] : []),
    ],
  })
}

/**
 * Attacks a server so many times, some at once, while another client calls it. Each attack has to end, each call of the other
 * client has to be answered right, probes have to be answered, and memory and descriptors have to come back.
 *
 * @param o.seed - of the first attack; the next ones have those after it.
 */
export async function attack(
  t: Test,
  serving: Serving,
  o: { readonly kind: AttackClass; readonly count: number; readonly seed: number },
): Promise<void> {
  const { kind, count, seed } = o
  t.comment(`${count} attacks, seeds from ${seed}`)
  await servesRightBytes(t, serving)
  const before = { bytes: await residentBytes(serving), descriptors: descriptors(serving) }
  const problems = new Set<string>()
  let sent = 0
  const attackers = Array.from({ length: AT_A_TIME }, async () => {
    while (sent < count) {
      const problem = await attackOnce(kind, serving, seed + sent++)
      if (problem !== undefined) problems.add(problem)
    }
  })
  const ends: unknown[] = []
  const attacked = Promise.all(attackers).finally(() => ends.push(true))
  let asked = 0
  while (ends.length === 0) {
    for (const problem of await askRight(serving)) problems.add(problem)
    asked += 1
  }
  await attacked
  t.same(
    [...problems],
    [],
    `every attack has ended, and ${asked} calls of another client went well`,
  )
  t.ok(asked > 0)
  await servesRightBytes(t, serving)
  const left = await untilReturned(serving, before)
  t.ok(
    left.descriptors <= before.descriptors + KEPT_DESCRIPTORS,
    `${left.descriptors} descriptors, ${before.descriptors} before`,
  )
  t.ok(left.bytes <= before.bytes + KEPT_BYTES, `${left.bytes} bytes, ${before.bytes} before`)
}

/** Finds what goes wrong with a call, a probe and a look at the metrics. */
async function askRight(serving: Serving): Promise<readonly string[]> {
  try {
    const y = restOutputs(await restInfer(serving, 'ens_chain', [row('X')])).get('Y')
    const wanted = [...toFloats(row('X'))].map((x) => x + 2)
    const isRight =
      y !== undefined && toFloats({ data: y }).every((value, i) => value === wanted[i])
    const probe = await restCall(serving.metricsPort, 'GET', '/livez')
    const live = await restCall(serving.httpPort, 'GET', '/v2/health/live')
    return [
      ...(await askSmall(serving.grpcPort)),
      ...(isRight ? [] : ['another client got a wrong answer']),
      ...(probe.status === 200 && live.status === 200
        ? []
        : [`probes got ${probe.status} and ${live.status}`]),
    ]
  } catch (error) {
    return [`another client: ${String(error)}`]
  }
}

async function untilReturned(serving: Serving, before: { readonly descriptors: number }) {
  const end = performance.now() + RETURN_MS
  while (descriptors(serving) > before.descriptors + KEPT_DESCRIPTORS && performance.now() < end) {
    await sleep(200)
  }
  return { bytes: await residentBytes(serving), descriptors: descriptors(serving) }
}

function descriptors({ process }: Serving): number {
  return readdirSync(`/proc/${process.pid}/fd`).length
}
