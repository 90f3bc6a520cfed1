// needs: nats
import { setTimeout as sleep } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { testSeed } from '@tutti/chassis/testing'
import t, { type Test } from 'tap'
import { heldBy } from '../control-churn.ts'
import { withoutMemoryLimits } from '../faults/memory.ts'
import { SKIP } from '../processes/harness.ts'
import { parseLine } from '../serving.ts'
import { type AttackedPlace, startRouterAndStep, startServe } from './attacked-places.ts'
import type { AttackOrders, AttackReport } from './attackers.ts'
import { startWatching, type Watched } from './watched-calls.ts'

t.setTimeout(0)

const MINUTES = Number(process.env['TUTTI_SOAK_MINUTES'] ?? 60)
const SEED = testSeed()
const MEGABYTE = 2 ** 20
/** Log files and threads that start when they are needed. */
const KEPT_DESCRIPTORS = 16
const RETURN_MS = 60_000
const PROGRESS_MS = 60_000
const MOST_LINES = 40
/** For each place. */
const SEEDS = 1e8
const skip = SKIP || withoutMemoryLimits()

await t.test('all attacks at once harm nobody else', { skip }, async (t) => {
  t.comment(`TUTTI_SEED=${SEED}, ${MINUTES} minutes`)
  const serving = await startServe(t)
  const { places: overNats, broker } = await startRouterAndStep(t)
  const places = [serving, ...overNats]
  await Promise.all(places.map((place, i) => attackPlace(t, place, SEED + i * SEEDS)))
  t.ok(broker.isAlive(), 'the broker lives')
  t.comment(`broker: at most ${megabytes(broker.group.peakBytes())}`)
})

/** Attacks a process while another client calls it, and says how both went. */
async function attackPlace(t: Test, place: AttackedPlace, seed: number): Promise<void> {
  const { name, target, question, process } = place
  t.comment(`${name}: seeds from ${seed}`)
  const before = await heldBy(place)
  const firstLine = process.lines.length
  const ended: string[] = []
  void process.exited.then(({ code, signal }) => ended.push(`exit ${code}, ${signal}`))
  const client = startWatching(target, question)
  const progress = (): void => t.comment(progressOf(place, firstLine, client.watched()))
  const ticks = setInterval(progress, PROGRESS_MS)
  const { grpcPort, httpPort, metricsPort } = target
  const orders = { target: { grpcPort, httpPort, metricsPort }, seed, minutes: MINUTES }
  const attacks = startAttackers(t, orders)
  const report = await Promise.race([attacks, process.exited.then(() => undefined)])
  clearInterval(ticks)
  await client.stop()
  t.same(ended, [], `${name} lives`)
  progress()
  for (const line of troubleOf(place)) t.comment(`${name}: ${line}`)
  if (report === undefined) return
  t.comment(`${name}: ${JSON.stringify(report)}`)
  for (const [kind, watched] of client.watched()) {
    t.comment(`${name}, ${summary(kind, watched)}`)
    t.same(watched.problems, {}, `${name}, ${kind}: right, or refused as overload`)
    t.ok(watched.right > 0, `${name}, ${kind}`)
  }
  const left = await returned(place, before.descriptors)
  t.comment(`${name}: before ${JSON.stringify(before)}, afterwards ${JSON.stringify(left)}`)
  t.ok(left.descriptors <= before.descriptors + KEPT_DESCRIPTORS, `${name}: descriptors are back`)
}

async function startAttackers(t: Test, orders: AttackOrders): Promise<AttackReport> {
  const worker = new Worker(new URL('attackers.ts', import.meta.url), { workerData: orders })
  t.teardown(() => worker.terminate())
  return await new Promise((resolve, reject) => {
    worker.on('error', reject)
    worker.on('message', ({ problem, report }: { problem?: string; report?: AttackReport }) => {
      if (problem !== undefined) t.comment(problem)
      if (report !== undefined) resolve(report)
    })
  })
}

async function returned(place: AttackedPlace, descriptors: number) {
  const end = performance.now() + RETURN_MS
  let held = await heldBy(place)
  while (held.descriptors > descriptors + KEPT_DESCRIPTORS && performance.now() < end) {
    await sleep(500)
    held = await heldBy(place)
  }
  return held
}

/** The last lines that say that something is wrong. */
function troubleOf({ process: { lines } }: AttackedPlace): readonly string[] {
  return lines.filter((line) => /"level":"(?:warn|error)"/.test(line)).slice(-MOST_LINES)
}

/** Milliseconds of the long turns of a process's loop, the longest first. */
function longTurns({ process: { lines } }: AttackedPlace, from: number): readonly number[] {
  return lines
    .slice(from)
    .map(parseLine)
    .filter(({ message }) => message === 'long turn')
    .map(({ ms }) => Number(ms))
    .toSorted((a, b) => b - a)
}

function progressOf(
  place: AttackedPlace,
  firstLine: number,
  watched: ReadonlyMap<string, Watched>,
): string {
  const turns = longTurns(place, firstLine)
  const kinds = [...watched.values()]
  const sum = (of: (one: Watched) => number): number => kinds.reduce((all, one) => all + of(one), 0)
  const problems = kinds.map((one) => one.problems).filter((one) => Object.keys(one).length > 0)
  return [
    `${place.name}: ${new Date().toISOString()}, at most ${megabytes(place.group.peakBytes())}`,
    `longest turns ${turns.slice(0, 5).join(', ')} ms of ${turns.length}`,
    `${place.process.lines.length} lines`,
    `right ${sum((one) => one.right)}, refused ${sum((one) => one.refused)}`,
    JSON.stringify(problems),
  ].join('; ')
}

function summary(kind: string, { right, refused, latenciesMs }: Watched): string {
  const sorted = latenciesMs.toSorted((a, b) => a - b)
  const at = (share: number): number =>
    Math.round(sorted[Math.floor(share * (sorted.length - 1))] ?? 0)
  return `${kind}: ${right} right, ${refused} refused; p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, longest ${at(1)} ms`
}

function megabytes(bytes: number): string {
  return `${Math.round(bytes / MEGABYTE)} MiB`
}
