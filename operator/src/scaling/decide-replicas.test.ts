import * as fc from 'fast-check'
import t from 'tap'
import {
  decideReplicas,
  type NativeScaling,
  type PodLoad,
  type Recommendation,
  type ScalingInput,
} from './decide-replicas.ts'

const MINUTE = 60_000

const native = (o: Partial<NativeScaling> = {}): NativeScaling => ({
  provider: 'Native',
  min: 1,
  max: 10,
  upWindowMs: 0,
  downWindowMs: 5 * MINUTE,
  ...o,
})

const load = (inFlight: number, queued = 0, slots = 1): PodLoad => ({ inFlight, queued, slots })

function decide(o: Partial<ScalingInput>): number {
  const input = { scaling: native(), current: 2, loads: [], recommendations: [], now: 0, ...o }
  return decideReplicas(input).replicas
}

await t.test('replicas follow the requests in flight and queued', async (t) => {
  t.equal(decide({ loads: [load(1, 3), load(1, 0)] }), 5)
  t.equal(decide({ loads: [load(2, 0, 4), load(2, 14, 4)] }), 5)
  t.equal(decide({ scaling: native({ target: 6 }), loads: [load(10), load(12)] }), 4)
})

await t.test('a tenth off the target changes nothing', async (t) => {
  const scaling = native({ target: 10, downWindowMs: 0 })
  t.equal(decide({ scaling, loads: [load(11), load(10)] }), 2)
  t.equal(decide({ scaling, loads: [load(9), load(9)] }), 2)
  t.equal(decide({ scaling, loads: [load(12), load(12)] }), 3)
  t.equal(decide({ scaling, loads: [load(5), load(4)] }), 1)
})

await t.test('up at most twice, or four more, at once', async (t) => {
  const scaling = native({ max: 1000 })
  t.equal(decide({ scaling, current: 1, loads: [load(1, 4000)] }), 5)
  t.equal(decide({ scaling, current: 20, loads: [load(1, 4000)] }), 40)
})

await t.test('down waits until the window has seen nothing higher', async (t) => {
  let recommendations: readonly Recommendation[] = []
  let current = 6
  const look = (now: number) => {
    const decision = decideReplicas({
      scaling: native(),
      current,
      loads: [load(0)],
      recommendations,
      now,
    })
    recommendations = decision.recommendations
    current = decision.replicas
    return current
  }
  t.equal(look(0), 6)
  t.equal(look(5 * MINUTE), 6)
  t.equal(look(5 * MINUTE + 1), 1)
})

await t.test('without a window it goes down at once', async (t) => {
  t.equal(decide({ scaling: native({ downWindowMs: 0 }), current: 6, loads: [load(2)] }), 2)
})

const anyLoad = fc.record({
  inFlight: fc.nat(50),
  queued: fc.nat(500),
  slots: fc.nat(8),
})
const anyScaling = fc
  .record({
    min: fc.integer({ min: 1, max: 20 }),
    more: fc.nat(20),
    target: fc.option(fc.integer({ min: 1, max: 20 }), { nil: undefined }),
    upWindowMs: fc.constantFrom(0, MINUTE),
    downWindowMs: fc.constantFrom(0, MINUTE, 5 * MINUTE),
  })
  .map(({ min, more, target, ...windows }) =>
    native({ min, max: min + more, ...(target !== undefined && { target }), ...windows }),
  )

/** Plays looks, 15 s apart; gives the replicas after each. */
function play(
  scaling: NativeScaling,
  first: number,
  looks: readonly (readonly (PodLoad | undefined)[])[],
): readonly number[] {
  let recommendations: readonly Recommendation[] = []
  let current = first
  return looks.map((loads, i) => {
    const decision = decideReplicas({ scaling, current, loads, recommendations, now: i * 15_000 })
    recommendations = decision.recommendations
    current = decision.replicas
    return current
  })
}

const anyLooks = fc.array(fc.array(fc.option(anyLoad, { nil: undefined }), { maxLength: 6 }), {
  maxLength: 40,
})

await t.test('never outside of the bounds', async (t) => {
  fc.assert(
    fc.property(anyScaling, fc.nat(60), anyLooks, (scaling, first, looks) => {
      for (const replicas of play(scaling, first, looks)) {
        if (!Number.isInteger(replicas)) return false
        if (replicas < scaling.min || replicas > scaling.max) return false
      }
      return true
    }),
  )
  t.pass()
})

await t.test('a pod that does not answer never makes it fewer', async (t) => {
  fc.assert(
    fc.property(anyScaling, fc.array(anyLoad), fc.nat(30), (scaling, loads, first) => {
      const current = Math.min(scaling.max, Math.max(scaling.min, first))
      const input = { scaling, current, recommendations: [], now: 0, loads: [...loads, undefined] }
      return decideReplicas(input).replicas >= current
    }),
  )
  t.equal(decide({ loads: [] }), 2)
  t.equal(decide({ loads: [undefined, undefined] }), 2)
})

await t.test('a load that stays as it is settles', async (t) => {
  fc.assert(
    fc.property(anyScaling, fc.nat(30), fc.nat(400), (scaling, first, requests) => {
      // The load is one of the model, however many pods there are.
      const looks = Array.from({ length: 60 }, () => [load(requests, 0, 3)])
      const history = play(scaling, first, looks)
      const changes = history.filter((replicas, i) => i > 0 && replicas !== history[i - 1])
      const isMonotone = [1, -1].some((sign) =>
        history.every((replicas, i) => i === 0 || sign * (replicas - (history[i - 1] ?? 0)) >= 0),
      )
      return isMonotone && changes.length <= 8 && history.at(-1) === history.at(-2)
    }),
  )
  t.pass()
})

await t.test('after it went up, it goes down only when the window is over', async (t) => {
  fc.assert(
    fc.property(anyScaling, fc.nat(30), anyLooks, (scaling, first, looks) => {
      const history = [first, ...play(scaling, first, looks)]
      let upAt = Number.NEGATIVE_INFINITY
      for (let i = 2; i < history.length; i++) {
        const change = (history[i] ?? 0) - (history[i - 1] ?? 0)
        if (change > 0) upAt = i
        // Two looks apart at least, as the look that made it go up counts too.
        if (change < 0 && (i - upAt) * 15_000 <= scaling.downWindowMs) return false
      }
      return true
    }),
  )
  t.pass()
})
