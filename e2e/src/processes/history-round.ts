import { setTimeout as delay } from 'node:timers/promises'
import { testSeed, until } from '@tutti/chassis/testing'
import type { Test } from 'tap'
import { openClient } from '../grpc-client.ts'
import { seededRandom } from '../hostile.ts'
import { scrape } from '../metrics.ts'
import { ask, unclean } from './asking.ts'
import type { DirectKind } from './direct-flags.ts'
import { checkHistory, type FaultKind, type HistoryEvent } from './history-check.ts'
import { type HistoryClients, startHistoryClients } from './history-clients.ts'
import { type Cluster, startCluster } from './history-cluster.ts'
import { faultDeck, KINDS, type PlannedFault } from './history-faults.ts'
import { between, type Random } from './history-requests.ts'
import { identityQuestion } from './questions.ts'
import { howItEnded, logged, mark } from './seen.ts'

const CLIENTS = 24
/** So that the requests last as long as it takes to meet every kind of fault. */
const THINK_MS = 100
/** Requests between two storms, for which no fault is an excuse. */
const CALM = { least: 60, most: 300 }
/** Longest time between two faults of one storm. */
const APART_MS = 3000

export interface HistoryOptions {
  readonly seed: number
  readonly requests: number
  readonly direct?: DirectKind | undefined
  /** KINDS if absent. */
  readonly faults?: readonly FaultKind[] | undefined
}

/**
 * Clients ask while faults come and go, all of it of one seed; then holds what happened against what is promised, looks whether
 * anything is left anywhere, and ends all processes in order.
 *
 * @param o.requests - at least so many; the clients go on while faults are there.
 * @param o.direct - what requests and tensors travel over; what TUTTI_DIRECT names if absent.
 * @param o.faults - each of them comes once at least.
 */
export async function runHistory(t: Test, o: HistoryOptions) {
  t.comment(`TUTTI_SEED=${o.seed}`)
  const random = seededRandom(o.seed)
  const cluster = await startCluster(t, { routers: 2, steps: 3, broker: { direct: o.direct } })
  const empty = capacityOf(cluster)
  const events: HistoryEvent[] = []
  const record = (event: HistoryEvent): void => void events.push(event)
  const clients = startHistoryClients({
    seed: o.seed,
    clients: CLIENTS,
    routers: cluster.routers,
    record,
    thinkMs: THINK_MS,
  })
  t.teardown(() => clients.stop())
  const { requests, faults = KINDS } = o
  await runStorms(cluster, clients, { random, requests, faults, record })
  await clients.stop()
  const problems = checkHistory(events)
  t.same(problems.slice(0, 20), [], `each request has one outcome, the right one (${o.seed})`)
  await checkNothingIsLeft(t, cluster, empty)
  return summarise(events)
}

/** One round of a test. */
export async function showHistory(
  t: Test,
  requests: number,
  o: Pick<HistoryOptions, 'direct' | 'faults'> = {},
): Promise<void> {
  const { calm, outcomes, faults } = await runHistory(t, { ...o, seed: testSeed(), requests })
  t.comment(`${formatCounts(outcomes)}; ${calm} of them between the faults`)
  t.comment(formatCounts(faults))
  t.ok(calm > requests / 20, `${calm} requests had no fault for an excuse`)
  t.ok((outcomes.get('right') ?? 0) > requests / 2, 'most of them are answered')
}

interface Storms {
  readonly random: Random
  readonly requests: number
  readonly faults: readonly FaultKind[]
  readonly record: (event: HistoryEvent) => void
}

/** Storms of one or two faults, until every kind was there and there were enough requests. */
async function runStorms(cluster: Cluster, clients: HistoryClients, o: Storms): Promise<void> {
  const { random, faults } = o
  const deal = faultDeck(cluster, random, faults)
  let [fault, dealt] = [0, 0]
  const strike = async (planned: PlannedFault): Promise<void> => {
    const number = ++fault
    const { kind, at } = planned
    const router = at !== 'broker' && at.role === 'router' ? { router: at.name } : {}
    o.record({ type: 'struck', fault: number, kind, ...router })
    await planned.run()
    await cluster.settled()
    o.record({ type: 'settled', fault: number })
  }
  while (dealt < faults.length || clients.ended < o.requests) {
    const calmUntil = clients.ended + between(random, CALM.least, CALM.most)
    await until('clients go on', () => clients.ended >= calmUntil)
    const first = deal(undefined)
    const second = random() < 0.6 ? deal(first?.at) : undefined
    const storm = [first, second].filter((one) => one !== undefined)
    dealt += storm.length
    const apartMs = between(random, 0, APART_MS)
    await Promise.all(
      storm.map(async (planned, i) => {
        await delay(i * apartMs)
        await strike(planned)
      }),
    )
  }
}

/** Room that a process has free when it has nothing to do. */
interface Capacity {
  readonly freeBytes: number
  readonly freeSlots: number
}

/** By role, as it is before there is any work. */
function capacityOf({ harness, routers, steps }: Cluster): ReadonlyMap<string, Capacity> {
  return new Map(
    [...routers, ...steps].map(({ role, member }) => {
      const heard = harness.watch.latest(member.id)
      if (heard === undefined) throw new Error(`${member.id} was never heard`)
      return [role, { freeBytes: heard.freeBytes, freeSlots: heard.freeSlots }]
    }),
  )
}

const LARGE_BYTES = 12_000_000

async function checkNothingIsLeft(
  t: Test,
  cluster: Cluster,
  empty: ReadonlyMap<string, Capacity>,
): Promise<void> {
  const { harness, routers, steps } = cluster
  const places = [...routers, ...steps]
  const clients = routers.map(({ member }) => openClient(t, member))
  // On a machine that gives the broker no time for seconds, a member connects anew, and they are asked again.
  await until('large requests have their windows', async () => {
    const large = clients.flatMap((client) =>
      [0, 1, 2, 3].map((i) => ask(client, identityQuestion(LARGE_BYTES, i))),
    )
    const failed = unclean(await Promise.all(large))
    if (failed.length > 0) throw new Error(failed.join('; '))
    return (await Promise.all(large)).every(({ kind }) => kind === 'right')
  })
  for (const { member, role, name } of places) {
    const capacity = empty.get(role)
    await harness.watch.next(
      member.id,
      'has nothing in flight, and all its capacity',
      (h) =>
        h.inFlight + h.queued === 0 &&
        h.freeBytes === capacity?.freeBytes &&
        h.freeSlots === capacity.freeSlots,
    )
    const metrics = await scrape(member)
    t.equal(metrics.sum('nv_inference_pending_request_count'), 0, `${name} has none pending`)
  }
  for (const { member, name } of places) {
    const from = mark(member.process)
    const ended = member.process.stop('SIGTERM', 60_000)
    // The transport's own word, of calls that no heartbeat counts.
    await logged(member.process, from, 'member draining', { inFlight: 0 })
    t.equal(howItEnded(member.process, await ended), '', `${name} ends in order`)
  }
  await harness.broker.kill()
  t.same(cluster.leftBehind(), [], 'no process is left behind')
}

/** Sums up what a round was made of, for reports; `calm` counts requests in whose time there was no fault. */
function summarise(events: readonly HistoryEvent[]) {
  const outcomes = new Map<string, number>()
  const faults = new Map<string, number>()
  const unharmed = new Set<number>()
  let [calm, active] = [0, 0]
  for (const event of events) {
    if (event.type === 'struck') {
      count(faults, event.kind)
      active += 1
      unharmed.clear()
    }
    if (event.type === 'settled') active -= 1
    if (event.type === 'invoked' && active === 0) unharmed.add(event.request)
    if (event.type !== 'ended') continue
    const { outcome, request } = event
    if (unharmed.delete(request)) calm += 1
    count(outcomes, outcome.kind === 'error' ? `${outcome.code} ${outcome.reason}` : outcome.kind)
  }
  return { calm, outcomes, faults }
}

/** One more of it. */
export function count(counts: Map<string, number>, what: string): void {
  counts.set(what, (counts.get(what) ?? 0) + 1)
}

/** For a report: the most frequent first. */
export function formatCounts(counts: ReadonlyMap<string, number>): string {
  const sorted = [...counts].toSorted(([, a], [, b]) => b - a)
  return sorted.map(([what, times]) => `${times} ${what}`).join(', ')
}
