import * as fc from 'fast-check'
import t from 'tap'
import { forgive, type ReplicaSpeed, ReplicaWork, UNWEIGHED, type Work } from './replica-work.ts'
import { StepDirectory } from './step-directory.ts'
import { type BalancingScenario, BalancingSimulation } from './testing/balancing-simulation.ts'

const of = (bytes: number) => [{ data: new Uint8Array(bytes) }]
const took = (ms: number) => ({
  queueNs: 1e9,
  computeInputNs: 0,
  computeInferNs: ms * 1e6,
  computeOutputNs: 0,
  transferNs: 1e9,
})
const place = (key: string, work: Work, replica: ReplicaSpeed) => ({ pin: { key }, work, replica })
const fresh = () => ({ slowness: 1, hasAnswered: false })
const served = { model: 'm', version: 1, revision: 'r' }

function randomOf(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 4_294_967_296
    return state / 4_294_967_296
  }
}

await t.test('what a request takes is learnt by revision and by size', async (t) => {
  const work = new ReplicaWork()
  t.equal(work.expect('k', of(10)).us, 1, 'nothing is known')
  const replica = fresh()
  for (let i = 0; i < 200; i += 1) {
    work.learn(place('k', work.expect('k', of(100)), replica), took(1))
    work.learn(place('k', work.expect('k', of(10_000)), replica), took(100))
  }
  t.equal(work.expect('k', of(70)).us, 1024)
  t.equal(work.expect('k', [...of(5000), ...of(5000)]).us, 131_072, 'all inputs count')
  const other = work.expect('k', of(1_000_000)).us
  t.ok(other > 1000 && other < 100_000, 'an unknown size has the mean of all')
  t.equal(work.expect('other', of(70)).us, 1)
  t.equal(replica.slowness, 1)
})

await t.test('what says nothing of the model is not learnt', async (t) => {
  const work = new ReplicaWork()
  work.learn(place('k', work.expect('k', of(1)), fresh()), took(0))
  work.learn(place('k', UNWEIGHED, fresh()), took(5))
  t.equal(work.expect('k', of(1)).us, 1)
})

await t.test('sums of work stay exact, whatever times a replica says', async (t) => {
  const work = new ReplicaWork()
  const absurd = { ...took(0), computeInferNs: 1e300 }
  work.learn(place('k', work.expect('k', of(1)), fresh()), absurd)
  const { us } = work.expect('k', of(1))
  let sum = 0
  for (const more of [1, us, -us, -1]) sum += more
  t.equal(sum, 0, `${us} us`)
})

await t.test('a slow replica is known by its answers, and forgiven once it has none', async (t) => {
  const work = new ReplicaWork()
  const [fast, slow] = [fresh(), fresh()]
  for (let i = 0; i < 200; i += 1) {
    for (let k = 0; k < 9; k += 1) work.learn(place('k', work.expect('k', of(1)), fast), took(10))
    work.learn(place('k', work.expect('k', of(1)), slow), took(40))
  }
  t.ok(slow.slowness / fast.slowness > 3, `${slow.slowness} and ${fast.slowness}`)
  forgive(slow)
  t.ok(slow.slowness > 1.5, 'it has answered since')
  for (let i = 0; i < 100; i += 1) forgive(slow)
  t.ok(slow.slowness < 1.2)
})

await t.test('what was cancelled says at least how slow its replica is', async (t) => {
  const work = new ReplicaWork()
  const lost = fresh()
  const at = () => place('k', work.expect('k', of(1)), lost)
  work.learnAtLeast(at(), { elapsedUs: 1e6, workUs: 1 })
  t.equal(lost.slowness, 1, 'nothing is known of the model')
  for (let i = 0; i < 100; i += 1) work.learn(at(), took(10))
  for (const known of [
    { elapsedUs: 10_000, workUs: 8192 },
    { elapsedUs: 90_000, workUs: 90_000 },
  ]) {
    work.learnAtLeast(at(), known)
    t.equal(lost.slowness, 1, 'it was not late, for what was there before it')
  }
  for (let i = 0; i < 200; i += 1) work.learnAtLeast(at(), { elapsedUs: 20_000, workUs: 8192 })
  t.ok(Math.abs(lost.slowness - 2) < 0.1, `${lost.slowness}`)
  for (let i = 0; i < 500; i += 1) work.learnAtLeast(at(), { elapsedUs: 1e9, workUs: 8192 })
  t.ok(lost.slowness > 3 && lost.slowness <= 4, `${lost.slowness}: bounded, as answers are`)
  work.learnAtLeast(place('k', UNWEIGHED, lost), { elapsedUs: 1, workUs: 1 })
  const slowness = lost.slowness
  work.learnAtLeast(at(), { elapsedUs: 20_000, workUs: 8192 })
  t.equal(lost.slowness, slowness, 'it takes nothing back')
})

await t.test(
  'of one slow and one fast replica the slow one gets little, and is tried again',
  async (t) => {
    const directory = new StepDirectory()
    const { places } = directory
    const load = { inFlight: 0, queued: 0, freeSlots: 1, freeBytes: 1 }
    for (const replica of ['fast', 'slow']) directory.announce({ replica }, [served], load)
    const ask = (): string => {
      const work = places.work.expect('m 1 r', of(1))
      const replica = places.acquire(served, { workUs: work.us })
      if (replica === undefined) return ''
      const { replica: name } = replica.address
      places.work.learn(place('m 1 r', work, replica), took(name === 'slow' ? 80 : 10))
      replica.inFlight -= 1
      replica.workUs -= work.us
      return name
    }
    const names = Array.from({ length: 200 }, ask)
    const early = names.slice(0, 20).filter((name) => name === 'slow').length
    t.ok(early > 0 && early < 18, `${early} of the first 20`)
    t.notOk(names.slice(-50).includes('slow'))
    for (let i = 0; i < 120; i += 1) directory.report('slow', load)
    t.ok(Array.from({ length: 2 }, ask).includes('slow'), 'after half a minute')
  },
)

await t.test(
  'of very many replicas some are compared for each request, and all get work',
  async (t) => {
    const directory = new StepDirectory()
    for (let i = 0; i < 1000; i += 1) directory.announce({ replica: String(i) }, [served])
    const taken = Array.from({ length: 3000 }, () => directory.places.acquire(served))
    const counts = new Map<string, number>()
    for (const one of taken) {
      const name = one?.address.replica ?? ''
      counts.set(name, (counts.get(name) ?? 0) + 1)
    }
    t.equal(counts.size, 1000)
    t.ok(Math.max(...counts.values()) <= 5, String(Math.max(...counts.values())))
  },
)

/** p99 by work over p99 by requests, as medians of five runs. */
function compare(o: Pick<BalancingScenario, 'slowness' | 'routers' | 'mix' | 'load'>) {
  const p99 = (isWeighed: boolean): number => {
    const runs = [1, 2, 3, 4, 5].map((seed) => {
      const random = randomOf(seed)
      return new BalancingSimulation({ ...o, requests: 6000, isWeighed, random }).run().p99Ms
    })
    return runs.toSorted((a, b) => a - b)[1] ?? 0
  }
  return { byWork: p99(true), byRequests: p99(false) }
}

await t.test('by outstanding work the slowest requests are faster than by requests', async (t) => {
  const even = Array.from({ length: 8 }, () => 1)
  const mixed = [
    [0.9, 1, 100],
    [0.1, 100, 10_000],
  ] as const
  const cases = [
    { name: 'mixed sizes', slowness: even, mix: mixed, routers: 1, most: 0.95 },
    { name: 'one slow', slowness: [4, ...even], mix: mixed, routers: 1, most: 0.7 },
    { name: 'one slow, three routers', slowness: [4, ...even], mix: mixed, routers: 3, most: 0.7 },
    {
      name: 'one slow, one size',
      slowness: [4, ...even],
      mix: [[1, 10, 1]],
      routers: 1,
      most: 0.7,
    },
    { name: 'all alike', slowness: even, mix: [[1, 10, 1]], routers: 3, most: 1.2 },
  ] as const
  for (const { name, most, ...scenario } of cases) {
    const { byWork, byRequests } = compare({ ...scenario, load: 0.8 })
    const figures = `${byWork.toFixed(0)} ms by work, ${byRequests.toFixed(0)} ms by requests`
    t.ok(byWork < most * byRequests, `${name}: ${figures}`)
    t.comment(`${name}: ${figures}`)
  }
})

await t.test('sizes that do not tell the time make it no worse', async (t) => {
  const slowness = Array.from({ length: 8 }, () => 1)
  const mix = [
    [0.9, 1, 100],
    [0.1, 100, 100],
  ] as const
  const { byWork, byRequests } = compare({ slowness, mix, routers: 1, load: 0.8 })
  t.comment(`${byWork.toFixed(0)} ms by work, ${byRequests.toFixed(0)} ms by requests`)
  t.ok(byWork < 1.15 * byRequests, `${byWork} and ${byRequests}`)
})

await t.test('whatever comes, every place is given back and no replica of several starves', (t) => {
  const slow = fc.double({ min: 0.2, max: 20, noNaN: true })
  fc.assert(
    fc.property(
      fc.array(slow, { minLength: 1, maxLength: 9 }),
      fc.integer({ min: 1, max: 4 }),
      fc.double({ min: 0.3, max: 0.95, noNaN: true }),
      fc.integer({ min: 0, max: 1e6 }),
      (slowness, routers, load, seed) => {
        const mix = [
          [0.5, 1, 10],
          [0.5, 20, 1000],
        ] as const
        const simulation = new BalancingSimulation({
          slowness,
          routers,
          mix,
          load,
          requests: 500,
          isWeighed: true,
          random: randomOf(seed),
        })
        simulation.run()
        const answered = simulation.answered.reduce((sum, count) => sum + count, 0)
        return answered === 500 && simulation.inFlight === 0
      },
    ),
    { numRuns: 60 },
  )
  t.end()
})
