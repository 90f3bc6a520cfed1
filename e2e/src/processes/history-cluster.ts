import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { type FaultProxy, until } from '@tutti/chassis/testing'
import type { Test } from 'tap'
import {
  type Harness,
  type HarnessOptions,
  type Member,
  type MemberOptions,
  startHarness,
} from './harness.ts'
import { isOk } from './seen.ts'
import { Sight } from './sight.ts'

export const STEP_MODELS = ['slow', 'add_one_batch', 'versioned', 'big_identity']
/** Models that clients ask for. */
export const SERVED = [
  'slow',
  'big_identity',
  'ens_chain',
  'ens_nested',
  'ens_slow',
  'ens_versioned',
]

/** Where one process after another of the same role runs, each behind a relay of its own to the broker. */
export interface Place {
  readonly role: 'router' | 'step'
  readonly name: string
  member: Member
  proxy: FaultProxy
}

export type Cluster = Awaited<ReturnType<typeof startCluster>>

export interface ClusterOptions {
  readonly routers: number
  readonly steps: number
  /** Options of all routers, and of all steps. */
  readonly router?: MemberOptions
  readonly step?: MemberOptions
  /** Models that every router has to serve; SERVED if absent. */
  readonly served?: readonly string[]
  readonly broker?: HarnessOptions
}

/** Starts routers and steps that come and go around one broker, and waits until all is served. */
export async function startCluster(t: Test, o: ClusterOptions) {
  const harness = await startHarness(t, o.broker)
  const pids = [harness.broker.pid]
  const start = async (role: Place['role']): Promise<Pick<Place, 'member' | 'proxy'>> => {
    const proxy = await harness.proxy()
    const member = await (role === 'step'
      ? harness.step({ models: STEP_MODELS, ...o.step, proxy })
      : harness.router({ ...o.router, proxy }))
    pids.push(member.process.pid)
    return { member, proxy }
  }
  const startMany = (role: Place['role'], count: number): Promise<readonly Place[]> =>
    Promise.all(
      Array.from({ length: count }, async (_, i) => ({
        role,
        name: `${role} ${i}`,
        ...(await start(role)),
      })),
    )
  const [routers, steps] = await Promise.all([
    startMany('router', o.routers),
    startMany('step', o.steps),
  ])
  const leaving = new Set<Member>()
  const cluster = {
    harness,
    routers,
    steps,
    /** Starts a process beside the one that has the place. */
    startAt: ({ role }: Place) => start(role),
    /** Finds what is there of all processes that were ever started here, and of those that they started. */
    leftBehind: () => groupsAlive(pids),
    /** Those whose places others have taken, until they are told to go; of all faults, as several happen at once. */
    leaving,
    /** Waits until all that have a place, and those that are leaving, are known to one another and serve, and no others are. */
    settled: async (): Promise<void> => {
      await untilAllSee(harness, [...routers, ...steps], leaving)
      await untilServed(routers, o.served ?? SERVED)
    },
  }
  await cluster.settled()
  return cluster
}

/** A soak asks hundreds of times, and logs get long: each line is read once. */
const sights = new WeakMap<Member, Sight>()

function sightOf(member: Member): Sight {
  const sight = sights.get(member) ?? new Sight(member)
  sights.set(member, sight)
  return sight
}

async function untilAllSee(
  { watch }: Harness,
  places: readonly Place[],
  leaving: ReadonlySet<Member>,
): Promise<void> {
  // Looked up anew each time: meanwhile another fault may put others into the places.
  const members = (): readonly Member[] => [...places.map(({ member }) => member), ...leaving]
  const before = new Map(members().map(({ id }) => [id, watch.latest(id)]))
  const isHeard = ({ id }: Member): boolean => {
    const latest = watch.latest(id)
    return latest !== undefined && latest !== before.get(id) && !latest.draining
  }
  const blind = (): Member | undefined => {
    const alive = new Set(members().map(({ id }) => id))
    return members().find((member) => !isHeard(member) || !sightOf(member).isRight(alive))
  }
  await until(
    () =>
      `all are heard and see who is there; one logged\n${blind()?.process.lines.slice(-20).join('\n')}`,
    () => blind() === undefined,
  )
}

async function untilServed(routers: readonly Place[], models: readonly string[]): Promise<void> {
  const state = { lacking: '' }
  await until(
    () => `every router serves all; but ${state.lacking}`,
    async () => {
      state.lacking = await lacks(routers, models)
      return state.lacking === ''
    },
  )
}

/** Says what some router does not serve, or ''. */
async function lacks(routers: readonly Place[], models: readonly string[]): Promise<string> {
  for (const { member } of routers) {
    for (const model of models) {
      const url = `http://127.0.0.1:${member.httpPort}/v2/models/${model}/ready`
      if (await isOk(url)) continue
      const log = member.process.lines.slice(-40).join('\n')
      return `${member.id} does not serve ${model}; it logged\n${log}`
    }
  }
  return ''
}

/** Each process is started as the leader of a group: what is left of the groups. */
function groupsAlive(leaders: readonly number[]): readonly string[] {
  if (!existsSync('/proc/self/stat')) return []
  const groups = new Set(leaders)
  return readdirSync('/proc').flatMap((entry) => {
    if (!/^\d+$/.test(entry)) return []
    try {
      const stat = readFileSync(`/proc/${entry}/stat`, 'utf8')
      const [, , group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      return groups.has(Number(group)) ? [stat] : []
    } catch {
      // It ended meanwhile.
      return []
    }
  })
}
