import { type Clock, silentLogger } from '@tutti/chassis'
import { createManualClock } from '@tutti/chassis/testing'
import { buildSubjects, decodeHeartbeat, type Heartbeat } from '@tutti/protocol'
import { StepDirectory } from '@tutti/transport'
import {
  ENDPOINT_DEFAULTS,
  Membership,
  OwnAnnouncements,
  type OwnState,
  TICK_MS,
  TransportEvents,
} from '@tutti/transport/testing'
import { printTable } from './figures.ts'
import { growCatalog } from './growth-catalog.ts'

const { heartbeatMs } = ENDPOINT_DEFAULTS
const SUBJECTS = buildSubjects({ prefix: 'tutti', repository: 'default' })
const VIRTUAL_MS = 5000
/** When one step in fifty stops without a word. */
const LOSS_MS = 1000

/** Members of one namespace, `namespaces` times over on the same brokers. Each step serves `models`. */
const CASES = [
  { namespaces: 1, routers: 1, steps: 10, models: 1 },
  { namespaces: 1, routers: 1, steps: 64, models: 1 },
  { namespaces: 1, routers: 10, steps: 64, models: 1 },
  { namespaces: 1, routers: 2, steps: 1000, models: 1 },
  { namespaces: 1, routers: 1, steps: 1, models: 1000 },
  { namespaces: 1, routers: 1000, steps: 1000, models: 1 },
  { namespaces: 1000, routers: 1, steps: 10, models: 1 },
  { namespaces: 1000, routers: 1, steps: 100, models: 1 },
] as const

type Case = (typeof CASES)[number]

/**
 * Measures what grows with models, ensembles, replicas, members and routers: the state machines of router and transport on a virtual
 * clock, without a broker, and the choice of requests. A minute at most.
 */
export async function benchGrowth(): Promise<void> {
  console.log('members: at the broker per second, and in one router')
  const heads = ['namespaces x (routers + steps x models)', 'sent', 'delivered', 'MB/s out']
  const rows = CASES.map(simulate)
  const ends = ['us/heartbeat', 'cores of a router', 'of a step', 'known', 'lost', 'refused']
  printTable([[...heads, ...ends], ...rows])
  console.log('replicas of a step: ns to choose one')
  printTable([['replicas', 'ns'], ...[1, 10, 64, 1000].map(choose)])
  console.log('catalog: 1,000 models')
  await growCatalog()
}

/** Simulates what one router hears, and one step, which hears routers alone. */
function simulate(o: Case): string[] {
  const clock = createManualClock()
  const members = openMembers(o, clock)
  const router = openRouter()
  const step = new Membership(ENDPOINT_DEFAULTS, DEAF)
  const silent = members.filter((_, i) => o.steps > 1 && i % 50 === 9)
  const heard = { router: count(), step: count() }
  const listen = (by: Membership, at: Heard, role: Heartbeat['role'] | undefined): void => {
    const before = process.cpuUsage()
    for (const one of members) {
      if (role !== undefined && one.role !== role) continue
      for (const bytes of one.said) {
        const heartbeat = decodeHeartbeat(bytes)
        if (!by.heartbeat(heartbeat)) at.refused.add(heartbeat.member)
        at.messages += 1
        at.bytes += bytes.byteLength
      }
    }
    const { user, system } = process.cpuUsage(before)
    at.us += user + system
  }
  let rounds = 0
  const round = (): void => {
    rounds += 1
    for (const one of members) {
      one.said.length = 0
      if (clock.now() < LOSS_MS || !silent.includes(one)) one.say()
    }
    listen(router.membership, heard.router, undefined)
    listen(step, heard.step, 'router')
    clock.setTimer(heartbeatMs, round)
  }
  const tick = (): void => {
    router.membership.tick(clock.now())
    step.tick(clock.now())
    clock.setTimer(TICK_MS, tick)
  }
  round()
  tick()
  clock.advance(VIRTUAL_MS)
  const known = (['step', 'router'] as const).map((role) => router.membership.members(role).length)
  const all = known.reduce((sum, one) => sum + one, 0)
  const counts = [all, router.lost(), heard.router.refused.size]
  return report(o, { ...heard, rounds }, counts)
}

interface Heard {
  messages: number
  bytes: number
  us: number
  readonly refused: Set<string>
}

function count(): Heard {
  return { messages: 0, bytes: 0, us: 0, refused: new Set() }
}

/** A step does nothing with what it hears but to choose among routers. */
const DEAF = { heard: () => {}, suspected: () => {}, recovered: () => {}, gone: () => {} } as const

function openRouter(): { readonly membership: Membership; readonly lost: () => number } {
  const directory = new StepDirectory()
  let lost = 0
  const membership = new Membership(ENDPOINT_DEFAULTS, {
    heard: (heartbeat, what) => hear(directory, heartbeat, what),
    suspected: (member) => directory.suspect(member, true),
    recovered: (member) => directory.suspect(member, false),
    gone: (member) => {
      lost += 1
      directory.remove(member)
    },
  })
  return { membership, lost: () => lost }
}

/** All members but the router that listens; `said` are their heartbeats of a round. */
function openMembers({ routers, steps, models }: Case, clock: Clock) {
  const open = (role: Heartbeat['role'], at: number, serves: number) => {
    const said: Uint8Array[] = []
    // As long as on Kubernetes: a pod's name, and the digest of a model's files.
    const announcements = new OwnAnnouncements({
      self: `${role}-${at}-7d9c5b8f6d-x2k4q`,
      role,
      subjects: SUBJECTS,
      clock,
      events: new TransportEvents(silentLogger),
      link: {
        maxPayload: Number.POSITIVE_INFINITY,
        publish: (_subject, bytes) => said.push(bytes) > 0,
      },
    })
    const state = stateOf(serves, at)
    return { role, said, say: () => announcements.send(state) }
  }
  return [
    ...Array.from({ length: routers - 1 }, (_, i) => open('router', i, 0)),
    ...Array.from({ length: steps }, (_, i) => open('step', i, models)),
  ]
}

function stateOf(models: number, at: number): OwnState {
  const revisions = Array.from(
    { length: models },
    (_, i) => [`model_${at}_${i}`, 1, 'f'.repeat(64)] as const,
  )
  const load = { inFlight: 1, queued: 0, freeSlots: 1023, freeBytes: 1_073_741_824 }
  const said = { description: 'd'.repeat(64), draining: false, revisions }
  return { ...load, ...said, unaskedBytes: 4_194_304, transports: ['nats'] }
}

/** In the whole installation, and in one router and one step of it. */
function report(
  { namespaces, routers, steps, models }: Case,
  heard: { readonly router: Heard; readonly step: Heard; readonly rounds: number },
  counts: readonly number[],
): string[] {
  const { rounds } = heard
  const all = (what: 'messages' | 'bytes'): number =>
    (namespaces * (routers * heard.router[what] + steps * heard.step[what])) / rounds
  // The router that listens is one that steps hear, too.
  const own = { messages: steps, bytes: (steps * heard.router.bytes) / heard.router.messages }
  const perSecond = 1000 / heartbeatMs
  const cores = ({ us }: Heard): string => (((us / rounds) * perSecond) / 1e6).toFixed(3)
  return [
    `${namespaces} x (${routers} + ${steps} x ${models})`,
    (namespaces * (routers + steps) * perSecond).toFixed(0),
    ((all('messages') + namespaces * own.messages) * perSecond).toFixed(0),
    (((all('bytes') + namespaces * own.bytes) * perSecond) / 1e6).toFixed(1),
    (heard.router.us / heard.router.messages).toFixed(1),
    cores(heard.router),
    cores(heard.step),
    ...counts.map(String),
  ]
}

function hear(directory: StepDirectory, heartbeat: Heartbeat, what: string): void {
  const { member, role, revisions } = heartbeat
  if (role !== 'step') return
  if (what === 'load') return directory.report(member, heartbeat)
  const served = revisions.map(([model, version, revision]) => ({ model, version, revision }))
  directory.announce({ replica: member }, served, heartbeat)
}

function choose(replicas: number): string[] {
  const directory = new StepDirectory()
  const revision = { model: 'm', version: 1, revision: 'r' }
  const load = { inFlight: 0, queued: 0, freeSlots: 64, freeBytes: 1e9 }
  for (let i = 0; i < replicas; i++) directory.announce({ replica: `step-${i}` }, [revision], load)
  const choices = Math.ceil(2_000_000 / (replicas + 20))
  const take = (): void => {
    for (let i = 0; i < choices; i++) {
      const place = directory.places.acquire(revision)
      if (place !== undefined) place.inFlight -= 1
    }
  }
  take()
  const before = performance.now()
  take()
  return [String(replicas), (((performance.now() - before) * 1e6) / choices).toFixed(0)]
}
