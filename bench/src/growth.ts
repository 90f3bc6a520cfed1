import { createManualClock } from '@tutti/chassis/testing'
import { decodeHeartbeat, encodeHeartbeat, type Heartbeat } from '@tutti/protocol'
import { StepDirectory } from '@tutti/transport'
import { ENDPOINT_DEFAULTS, Membership } from '@tutti/transport/testing'
import { printTable } from './figures.ts'
import { growCatalog } from './growth-catalog.ts'

const { heartbeatMs, tickMs } = ENDPOINT_DEFAULTS
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
 * What grows with models, ensembles, replicas, members and routers: the state machines of router and transport on a virtual clock,
 * without a broker, and the choice of requests. A minute at most.
 */
export async function benchGrowth(): Promise<void> {
  console.log('members: at the broker per second, and in one router')
  const heads = ['namespaces x (routers + steps x models)', 'sent', 'delivered', 'MB/s out']
  const rows = CASES.map(simulate)
  printTable([[...heads, 'us/heartbeat', 'cores of a member', 'known', 'lost', 'refused'], ...rows])
  console.log('replicas of a step: ns to choose one')
  printTable([['replicas', 'ns'], ...[1, 10, 64, 1000].map(choose)])
  console.log('catalog: 1,000 models')
  await growCatalog()
}

/** What one router hears. Each other member of the namespace hears as much, so the broker delivers this once for each. */
function simulate(o: Case): string[] {
  const { routers, steps, models } = o
  const clock = createManualClock()
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
  const members = [
    ...Array.from({ length: routers - 1 }, (_, i) => beat(`router-${i}`, 'router', 0, i)),
    ...Array.from({ length: steps }, (_, i) => beat(`step-${i}`, 'step', models, i)),
  ]
  const silent = new Set(members.filter((_, i) => steps > 1 && i % 50 === 9).map((m) => m.member))
  const refused = new Set<string>()
  let heard = 0
  let bytes = 0
  let usedUs = 0
  let sequence = 0
  const round = (): void => {
    sequence += 1
    const sent = members
      .filter(({ member }) => clock.now() < LOSS_MS || !silent.has(member))
      .map((state) => encodeHeartbeat({ ...state, sequence }))
    const before = process.cpuUsage()
    for (const message of sent) {
      const heartbeat = decodeHeartbeat(message)
      if (!membership.heartbeat(heartbeat)) refused.add(heartbeat.member)
      bytes += message.byteLength
    }
    heard += sent.length
    const { user, system } = process.cpuUsage(before)
    usedUs += user + system
    clock.setTimer(heartbeatMs, round)
  }
  const tick = (): void => {
    membership.tick(clock.now())
    clock.setTimer(tickMs, tick)
  }
  round()
  tick()
  clock.advance(VIRTUAL_MS)
  const known = membership.members('step').length + membership.members('router').length
  return report(o, {
    bytes: bytes / heard,
    us: usedUs / heard,
    counts: [known, lost, refused.size],
  })
}

/** @param each - of a heartbeat: its bytes, and the processor time that its receiver takes. */
function report(
  { namespaces, routers, steps, models }: Case,
  each: { readonly bytes: number; readonly us: number; readonly counts: readonly number[] },
): string[] {
  const others = routers + steps - 1
  const sent = (namespaces * (others + 1) * 1000) / heartbeatMs
  return [
    `${namespaces} x (${routers} + ${steps} x ${models})`,
    sent.toFixed(0),
    (sent * others).toFixed(0),
    ((sent * others * each.bytes) / 1e6).toFixed(1),
    each.us.toFixed(1),
    ((((others * 1000) / heartbeatMs) * each.us) / 1e6).toFixed(3),
    ...each.counts.map(String),
  ]
}

function beat(member: string, role: Heartbeat['role'], models: number, at: number): Heartbeat {
  // As long as on Kubernetes: a pod's name, and the digest of a model's files.
  const name = `${member}-7d9c5b8f6d-x2k4q`
  const revisions = Array.from(
    { length: models },
    (_, i) => [`model_${at}_${i}`, 1, 'f'.repeat(64)] as const,
  )
  const load = { inFlight: 1, queued: 0, freeSlots: 1023, freeBytes: 1_073_741_824 }
  const said = { description: 'd'.repeat(64), draining: false, revisions }
  const transports = ['nats'] as const
  return { member: name, role, sequence: 0, ...load, ...said, transports, protocol: 1 }
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
