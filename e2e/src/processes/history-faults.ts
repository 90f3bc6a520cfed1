import { setTimeout as delay } from 'node:timers/promises'
import { until } from '@tutti/chassis/testing'
import type { FaultKind } from './history-check.ts'
import type { Cluster, Place } from './history-cluster.ts'
import { between, oneOf, type Random } from './history-requests.ts'
import { howItEnded, isOk } from './seen.ts'

/** A fault before it happens. */
export interface PlannedFault {
  readonly kind: FaultKind
  readonly at: Place | 'broker'
  /** Does it and undoes it. @throws Error if a process does not end as it should. */
  run(): Promise<void>
}

/** How it happens. */
interface Manner {
  /** How long something is held, cut off or away. */
  readonly heldMs: number
  /** Connections are reset after they stood still; what is away comes back at once. */
  readonly isAbrupt: boolean
}

/** From pauses without an effect to pauses after which a member counts as dead. */
const HELD_MS = { least: 100, most: 5000 }

type AtPlace = (place: Place, cluster: Cluster, manner: Manner) => Promise<void>
type AtBroker = (cluster: Cluster, manner: Manner) => Promise<void>

const AT_PLACES: ReadonlyMap<FaultKind, readonly [Place['role'], AtPlace]> = new Map([
  ['step killed', ['step', kill]],
  ['step held', ['step', hold]],
  ['step cut off', ['step', cutOff]],
  ['step replaced', ['step', roll]],
  ['router killed', ['router', kill]],
  ['router drained', ['router', drainAndReplace]],
  ['router held', ['router', hold]],
  ['router cut off', ['router', cutOff]],
  ['router replaced', ['router', roll]],
])

const AT_BROKER: ReadonlyMap<FaultKind, AtBroker> = new Map([
  ['broker restarted', restartBroker],
  ['broker held', holdBroker],
])

/** Every kind of fault. */
export const KINDS: readonly FaultKind[] = [...AT_PLACES.keys(), ...AT_BROKER.keys()]

/**
 * Deals these kinds of faults in random order, all of them once before any comes again.
 *
 * @returns deals the next fault that does not strike where another one does already; undefined if there is none.
 */
export function faultDeck(
  cluster: Cluster,
  random: Random,
  kinds: readonly FaultKind[] = KINDS,
): (busy: PlannedFault['at'] | undefined) => PlannedFault | undefined {
  const deck: FaultKind[] = []
  return (busy) => {
    if (deck.length === 0) deck.push(...shuffled(random, kinds))
    for (const [i, kind] of deck.entries()) {
      const planned = plan(cluster, random, kind, busy)
      if (planned === undefined) continue
      deck.splice(i, 1)
      return planned
    }
    return undefined
  }
}

function plan(
  cluster: Cluster,
  random: Random,
  kind: FaultKind,
  busy: PlannedFault['at'] | undefined,
): PlannedFault | undefined {
  const heldMs = between(random, HELD_MS.least, HELD_MS.most)
  const manner = { heldMs, isAbrupt: random() < 0.5 }
  const atBroker = AT_BROKER.get(kind)
  if (atBroker !== undefined) {
    if (busy === 'broker') return undefined
    return { kind, at: 'broker', run: () => atBroker(cluster, manner) }
  }
  const [role, atPlace] = AT_PLACES.get(kind) ?? []
  const { routers, steps } = cluster
  const free = (role === 'step' ? steps : routers).filter((place) => place !== busy)
  if (atPlace === undefined || free.length === 0) return undefined
  const at = oneOf(random, free)
  return { kind, at, run: () => atPlace(at, cluster, manner) }
}

function shuffled<T>(random: Random, all: readonly T[]): readonly T[] {
  return all
    .map((one) => [random(), one] as const)
    .toSorted(([a], [b]) => a - b)
    .map(([, one]) => one)
}

async function kill(place: Place, cluster: Cluster): Promise<void> {
  await place.member.process.stop('SIGKILL')
  await replace(place, cluster)
}

async function hold({ member }: Place, _: Cluster, { heldMs }: Manner): Promise<void> {
  member.process.kill('SIGSTOP')
  await delay(heldMs)
  member.process.kill('SIGCONT')
}

async function cutOff({ proxy }: Place, _: Cluster, { heldMs, isAbrupt }: Manner): Promise<void> {
  proxy.stall()
  await delay(heldMs)
  if (isAbrupt) proxy.cut()
  proxy.resume()
}

async function drainAndReplace(place: Place, cluster: Cluster): Promise<void> {
  await drain(place.member)
  await replace(place, cluster)
}

/** Clients must not notice, so every router must know the new one before the old one goes. */
async function roll(place: Place, cluster: Cluster): Promise<void> {
  const before = place.member
  const fresh = await cluster.startAt(place)
  const { metricsPort, id } = fresh.member
  await until(`${id} is ready`, () => isOk(`http://127.0.0.1:${metricsPort}/readyz`))
  cluster.leaving.add(before)
  Object.assign(place, fresh)
  await cluster.settled().finally(() => cluster.leaving.delete(before))
  await drain(before)
}

async function restartBroker({ harness }: Cluster, { heldMs, isAbrupt }: Manner): Promise<void> {
  await harness.broker.kill()
  if (!isAbrupt) await delay(heldMs)
  await harness.broker.restart()
}

async function holdBroker({ harness }: Cluster, { heldMs }: Manner): Promise<void> {
  harness.broker.pause()
  await delay(heldMs)
  harness.broker.resume()
}

async function replace(place: Place, cluster: Cluster): Promise<void> {
  Object.assign(place, await cluster.startAt(place))
}

/** Above the process's own grace period. */
const DRAIN_LIMIT_MS = 60_000

async function drain({ process, id }: Place['member']): Promise<void> {
  const how = howItEnded(process, await process.stop('SIGTERM', DRAIN_LIMIT_MS))
  if (how !== '') throw new Error(`${id} ${how}`)
}
