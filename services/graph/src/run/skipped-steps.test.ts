import t from 'tap'
import type { EnsemblePlan } from '../plan/ensemble-plan.ts'
import type { Symbols } from '../testing/ensemble-driver.ts'
import { EnsembleDriver } from '../testing/ensemble-driver.ts'
import { type ModelPorts, manifestPlan } from '../testing/manifest-plan.ts'

const ONE: ModelPorts = { input: ['x'], output: ['y'] }
const MODELS: Readonly<Record<string, ModelPorts>> = {
  one: ONE,
  two: { input: ['x', 'z'], output: ['y'] },
  lenient: { input: ['x', 'z?'], output: ['y'] },
  source: { ...ONE, decoupled: true },
  nested: { ...ONE, optionalOutputs: ['y'] },
}
const X = { name: 'x', datatype: 'FP32', shape: [4] }

/** A step of the model of that name. */
const step = (name: string, model: string, inputMap: Symbols, more: object = {}) => ({
  name,
  modelRef: { name: model },
  inputMap,
  ...more,
})
const WHEN = { when: 'tensors["small.y"][0] < 0.8' }
const SMALL = step('small', 'one', { x: 'x' })
const LARGE = step('large', 'one', { x: 'x' }, WHEN)

function planOf(outputs: readonly object[], ...steps: readonly object[]): EnsemblePlan {
  return manifestPlan({ inputs: [X], outputs, steps }, MODELS)
}

/** Skips the one execution in flight of a step. */
function skip(driver: EnsembleDriver, name: string): void {
  driver.skip(driver.of(name))
}

await t.test('of several tensors the first that is there is read, and given out', (t) => {
  const best = { x: ['large.y', 'small.y'] }
  const plan = planOf(
    [
      { name: 'label', firstOf: ['large.y', 'small.y'] },
      { name: 'after', from: 'last.y' },
    ],
    SMALL,
    LARGE,
    { name: 'last', modelRef: { name: 'one' }, firstOf: best },
  )
  for (const isSkipped of [true, false]) {
    const driver = new EnsembleDriver(plan)
    driver.start({ x: 'X' })
    driver.respond(driver.of('small'), { y: 'S' })
    const { controls } = driver.of('large')
    t.same(
      controls.map(({ name, ref }) => [name, driver.symbol(ref)]),
      [['small.y', 'S']],
    )
    if (isSkipped) skip(driver, 'large')
    else driver.respond(driver.of('large'), { y: 'L' })
    const first = isSkipped ? 'S' : 'L'
    t.same(driver.read(driver.of('last')), { x: first })
    driver.respond(driver.of('last'), { y: 'Y' })
    t.same(
      driver.emitted.map(({ outputs }) => outputs),
      [{ label: first, after: 'Y' }],
    )
    t.equal(driver.held, 0)
  }
  t.end()
})

await t.test(
  'a step that lacks a required input is skipped too, one that can do without is not',
  (t) => {
    const plan = planOf(
      [
        { name: 'a', from: 'strict.y', optional: true },
        { name: 'b', from: 'lenient.y' },
        { name: 'c', from: 'behind.y', optional: true },
      ],
      SMALL,
      LARGE,
      step('strict', 'two', { x: 'x', z: 'large.y' }),
      step('behind', 'one', { x: 'strict.y' }),
      step('lenient', 'lenient', { x: 'x', z: 'large.y' }),
    )
    const driver = new EnsembleDriver(plan)
    driver.start({ x: 'X' })
    driver.respond(driver.of('small'), { y: 'S' })
    skip(driver, 'large')
    t.same(driver.running, ['lenient'])
    t.same(driver.skipped, ['strict', 'behind'])
    t.same(driver.read(driver.of('lenient')), { x: 'X' })
    driver.respond(driver.of('lenient'), { y: 'Y' })
    t.same(
      driver.emitted.map(({ outputs }) => outputs),
      [{ b: 'Y' }],
    )
    t.equal(driver.held, 0)
    t.end()
  },
)

await t.test('an output that no step has made is an error, unless it is optional', (t) => {
  const both = { firstOf: ['large.y', 'other.y'] }
  const steps = [SMALL, LARGE, { ...LARGE, name: 'other', when: 'tensors["small.y"][0] > 0.9' }]
  for (const optional of [false, true]) {
    const driver = new EnsembleDriver(planOf([{ name: 'label', ...both, optional }], ...steps))
    driver.start({ x: 'X' })
    driver.respond(driver.of('small'), { y: 'S' })
    skip(driver, 'large')
    skip(driver, 'other')
    if (optional)
      t.same(
        driver.emitted.map(({ outputs }) => outputs),
        [{}],
      )
    else {
      t.match(driver.failure?.error, {
        reason: 'OUTPUT_ABSENT',
        message:
          /^in ensemble 'e', output 'label': the steps that make it \('large', 'other'\) were skipped/,
      })
    }
    t.equal(driver.held, 0)
    t.equal(driver.terminals, 1)
  }
  t.end()
})

await t.test(
  'steps behind a skipped one in time begin, and a skipped source has no responses',
  (t) => {
    const plan = planOf(
      [{ name: 'y', from: 'sink.y', optional: true }],
      SMALL,
      step('source', 'source', { x: 'x' }, WHEN),
      step('sink', 'one', { x: 'source.y' }),
    )
    const driver = new EnsembleDriver(plan)
    driver.start({ x: 'X' })
    driver.respond(driver.of('small'), { y: 'S' })
    skip(driver, 'source')
    t.same(
      driver.emitted.map(({ outputs, action }) => [outputs, action.final]),
      [[{}, true]],
    )
    t.equal(driver.held, 0)

    const later = step('later', 'one', { x: 'x' }, { dependsOn: ['large'] })
    const ordered = new EnsembleDriver(
      planOf(
        [
          { name: 'y', from: 'later.y' },
          { name: 'z', from: 'large.y', optional: true },
        ],
        SMALL,
        LARGE,
        later,
      ),
    )
    ordered.start({ x: 'X' })
    ordered.respond(ordered.of('small'), { y: 'S' })
    skip(ordered, 'large')
    t.same(ordered.running, ['later'])
    t.end()
  },
)

await t.test(
  'what an ensemble within may lack is absent like what a skipped step would make',
  (t) => {
    const plan = planOf(
      [{ name: 'y', firstOf: ['last.y', 'small.y'] }],
      SMALL,
      step('inner', 'nested', { x: 'x' }),
      step('last', 'one', { x: 'inner.y' }),
    )
    const driver = new EnsembleDriver(plan)
    driver.start({ x: 'X' })
    driver.respond(driver.of('small'), { y: 'S' })
    driver.respond(driver.of('inner'), {})
    t.same(
      driver.emitted.map(({ outputs }) => outputs),
      [{ y: 'S' }],
    )
    t.equal(driver.held, 0)
    t.end()
  },
)

await t.test('constants, defaults and parameters reach a step', (t) => {
  const value = { datatype: 'FP32', value: [1, 2, 3, 4] }
  const parameters = { tier: 'gold', n: 3, f: 0.5, flag: true }
  const plan = manifestPlan(
    {
      inputs: [X, { ...X, name: 'more', optional: true, default: value }],
      outputs: [{ name: 'y', from: 'a.y' }],
      steps: [
        step('b', 'two', { x: 'x', z: 'more' }),
        step('a', 'two', { x: 'b.y' }, { constants: { z: value }, parameters }),
      ],
    },
    MODELS,
  )
  t.same(
    plan.constants.map(({ shape, data }) => [shape, [...new Float32Array(data.buffer)]]),
    [
      [[4], value.value],
      [[4], value.value],
    ],
  )
  const context = { parameters: new Map([['n', { kind: 'int64', value: 1n } as const]]) }
  const driver = new EnsembleDriver(plan, { context })
  driver.start({ x: 'X' })
  const [, z] = driver.of('b').inputs
  t.match(z, { name: 'z', ref: -2, shape: [4] })
  t.same([...driver.of('b').context.parameters], [['n', { kind: 'int64', value: 1n }]])
  driver.respond(driver.of('b'), { y: 'B' })
  t.match(driver.of('a').inputs, [{ name: 'x' }, { name: 'z', ref: -1, shape: [4] }])
  t.same(Object.fromEntries(driver.of('a').context.parameters), {
    n: { kind: 'int64', value: 3n },
    tier: { kind: 'string', value: 'gold' },
    f: { kind: 'double', value: 0.5 },
    flag: { kind: 'bool', value: true },
  })
  driver.respond(driver.of('a'), { y: 'Y' })
  t.equal(driver.held, 0)
  t.end()
})
