import { deepStrictEqual, ok } from 'node:assert/strict'
import { ServeError } from '@tutti/errors'
import type { EnsembleStep } from '@tutti/model-config'
import * as fc from 'fast-check'
import t from 'tap'
import { findStepCycle } from '../check/graph-walks.ts'
import { readConfigGraph } from '../read/read-config.ts'
import { ensembleConfig, modelConfig, stepConfig } from '../testing/configs.ts'
import { EnsembleDriver } from '../testing/ensemble-driver.ts'
import type { EnsemblePlan } from './ensemble-plan.ts'
import { planEnsemble } from './plan-ensemble.ts'

const BROKEN = new ServeError('ENGINE_FAILED', 'it broke')

function plan(
  ports: { readonly input: readonly string[]; readonly output: readonly string[] },
  steps: readonly EnsembleStep[],
  dependsOn: readonly (readonly number[])[],
  streams: readonly string[] = [],
): EnsemblePlan {
  const config = ensembleConfig({
    name: 'E',
    input: ports.input.map((name) => ({ name })),
    output: ports.output.map((name) => ({ name })),
    steps,
  })
  const graph = readConfigGraph(config)
  return planEnsemble({
    config,
    graph: {
      ...graph,
      steps: graph.steps.map((step, i) => ({ ...step, name: `s${i}`, after: dependsOn[i] ?? [] })),
    },
    lookup: (name) => ({
      config: modelConfig({
        name,
        input: [{ name: 'a' }],
        output: [{ name: 'b' }],
        model_transaction_policy: { decoupled: streams.includes(name) },
      }),
      readyVersions: [1],
    }),
  })
}

const XY = { input: ['x'], output: ['y', 'z'] }
const SIDE_BY_SIDE = [
  stepConfig('m', { a: 'x' }, { b: 'y' }),
  stepConfig('m', { a: 'x' }, { b: 'z' }),
]

await t.test(
  'a step begins when the one it depends on has ended, not when it answers',
  async (t) => {
    const graph = plan(XY, SIDE_BY_SIDE, [[1], []])
    const driver = new EnsembleDriver(graph)
    driver.start({ x: 'X' })
    t.same(driver.running, ['s1'])
    const first = driver.of('s1')
    driver.respond(first, { b: 'Z' }, { final: false })
    t.same(driver.running, ['s1'])
    driver.respond(first, {}, { index: 1 })
    t.same(driver.running, ['s0'])
    driver.respond(driver.of('s0'), { b: 'Y' })
    t.same(driver.emitted[0]?.outputs, { y: 'Y', z: 'Z' })
    t.equal(driver.held, 0)
  },
)

await t.test('a dependency makes no step run', async (t) => {
  const graph = plan(XY, SIDE_BY_SIDE, [[1], []])
  const driver = new EnsembleDriver(graph, { requestedOutputs: ['y'] })
  driver.start({ x: 'X' })
  t.same(driver.running, ['s0'])
})

await t.test('a step whose dependency fails does not begin', async (t) => {
  const graph = plan(XY, SIDE_BY_SIDE, [[1], []])
  const driver = new EnsembleDriver(graph)
  driver.start({ x: 'X' })
  t.same(driver.running, ['s1'])
  driver.fail(driver.of('s1'), BROKEN)
  t.match(driver.failure?.error, { reason: 'ENGINE_FAILED', details: { step: 's1', model: 'm' } })
  t.equal(driver.held, 0)
})

await t.test('each response of a stream waits for what came before the stream', async (t) => {
  const graph = plan(
    { input: ['x'], output: ['y', 'z'] },
    [
      stepConfig('side', { a: 'x' }, { b: 's' }),
      stepConfig('source', { a: 's' }, { b: 'mid' }),
      stepConfig('m', { a: 'mid' }, { b: 'y' }),
      stepConfig('m', { a: 'mid' }, { b: 'z' }),
    ],
    [[], [], [0, 3], []],
    ['source'],
  )
  const driver = new EnsembleDriver(graph)
  driver.start({ x: 'X' })
  const side = driver.of('s0')
  driver.respond(side, { b: 'S' }, { final: false })
  const source = driver.of('s1')
  driver.respond(source, { b: 'A' }, { index: 0, final: false })
  driver.respond(driver.of('s3'), { b: 'ZA' })
  t.same(driver.running, ['s0', 's1'], 'the side has not ended')
  driver.respond(side, {}, { index: 1 })
  t.same(driver.running, ['s1', 's2'])
  driver.respond(source, { b: 'B' }, { index: 1 })
  t.same(driver.running, ['s2', 's3'], 'of the second response the side is over from the start')
  driver.respond(driver.of('s3'), { b: 'ZB' })
  t.same(driver.running, ['s2', 's2'])
  for (const invoke of driver.inFlight.values()) driver.respond(invoke, { b: 'Y' })
  t.same(
    driver.emitted.map(({ outputs }) => outputs),
    [
      { y: 'Y', z: 'ZA' },
      { y: 'Y', z: 'ZB' },
    ],
  )
  t.equal(driver.held, 0)
})

await t.test('dependencies that do not fit are refused', async (t) => {
  const chain = [stepConfig('m', { a: 'x' }, { b: 'y' }), stepConfig('n', { a: 'y' }, { b: 'z' })]
  const cases: readonly (readonly [readonly number[][], string, readonly string[]])[] = [
    [[[1], []], 'in ensemble E, steps wait for one another: s0 -> s1 -> s0', []],
    [[[0], []], 'in ensemble E, steps wait for one another: s0 -> s0', []],
    [
      [[], [0]],
      "in ensemble E, step 's1' depends on 's0', whose model is decoupled: what follows it runs for each of its responses and cannot wait for the last",
      ['m'],
    ],
  ]
  for (const [dependsOn, message, streams] of cases) {
    t.throws(() => plan({ input: ['x'], output: ['y', 'z'] }, chain, dependsOn, streams), {
      code: 'INVALID_ARGUMENT',
      reason: 'ENSEMBLE_INVALID',
      message,
    })
  }
})

await t.test(
  'whatever steps wait for, a cycle is found exactly if there is no order',
  async (t) => {
    const edges = fc.array(fc.tuple(fc.nat({ max: 7 }), fc.nat({ max: 7 })), { maxLength: 14 })
    let cycles = 0
    t.doesNotThrow(() =>
      fc.assert(
        fc.property(edges, (list) => {
          const waits = Array.from({ length: 8 }, (_, i) =>
            list.filter(([to]) => to === i).map(([, from]) => from),
          )
          const cycle = findStepCycle(waits)
          deepStrictEqual(cycle !== undefined, !isOrderable(list))
          if (cycle === undefined) return
          cycles += 1
          for (const [i, step] of cycle.entries()) {
            const next = cycle[(i + 1) % cycle.length]
            ok(list.some(([to, from]) => to === step && from === next))
          }
        }),
        { numRuns: 500 },
      ),
    )
    t.ok(cycles > 50)
  },
)

/** True if some order puts every step behind all that it waits for. */
function isOrderable(edges: readonly (readonly [number, number])[]): boolean {
  const left = new Set([0, 1, 2, 3, 4, 5, 6, 7])
  for (let round = 0; round < 8; round += 1) {
    for (const step of left) {
      if (!edges.some(([to, from]) => to === step && left.has(from))) left.delete(step)
    }
  }
  return left.size === 0
}
