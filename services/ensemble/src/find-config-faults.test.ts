import { type EnsembleStep, type ModelConfig, parseJsonConfig } from '@tutti/model-config'
import t from 'tap'
import { findConfigFaults } from './find-config-faults.ts'
import { planEnsemble } from './plan-ensemble.ts'

const tensor = (name: string, type = 'TYPE_FP32', dims = [4]) => ({ name, data_type: type, dims })

const MODELS = new Map<string, ModelConfig>(
  [
    { name: 'one', input: [tensor('x')], output: [tensor('y')] },
    {
      name: 'two',
      input: [tensor('x'), tensor('z')],
      output: [tensor('y'), tensor('w', 'TYPE_INT32')],
    },
    { name: 'batched', max_batch_size: 4, input: [tensor('x')], output: [tensor('y')] },
  ].map((model) => [model.name, parseJsonConfig(model)]),
)

/** Numbers below `n`, the same for each seed. */
function rolls(seed: number): (n: number) => number {
  let state = seed * 2_654_435_761 + 1
  return (n) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * n)
  }
}

/** Mostly a chain that is right, with a few changes. */
function randomEnsemble(roll: (n: number) => number): ModelConfig {
  const count = 1 + roll(3)
  const names = ['a', ...Array.from({ length: count - 1 }, (_, i) => `t${i}`), 'b']
  const odd = (name: string) =>
    roll(12) === 0 ? (['a', 't0', 'b', 'nowhere'][roll(4)] ?? '') : name
  const steps: Partial<EnsembleStep>[] = Array.from({ length: count }, (_, i) => {
    const model = ['one', 'one', 'one', 'two', 'batched', 'absent'][roll(6)] ?? ''
    const input: Record<string, string> = { x: odd(names[i] ?? '') }
    const output: Record<string, string> = { y: odd(names[i + 1] ?? '') }
    if (model === 'two' && roll(3) > 0) input['z'] = odd(names[i] ?? '')
    if (roll(20) === 0) output['w'] = odd('t9')
    if (roll(25) === 0) delete input['x']
    return {
      model_name: model,
      model_version: roll(20) === 0 ? 7 : -1,
      input_map: input,
      output_map: output,
    }
  })
  return parseJsonConfig({
    name: 'e',
    platform: 'ensemble',
    max_batch_size: [0, 0, 4, 8][roll(4)],
    input: roll(15) === 0 ? [tensor('a'), tensor('idle')] : [tensor('a')],
    output: [tensor('b', roll(15) === 0 ? 'TYPE_INT32' : 'TYPE_FP32', [roll(15) === 0 ? 5 : 4])],
    ensemble_scheduling: { step: steps },
  })
}

await t.test('there are faults exactly where planning refuses', async (t) => {
  const seen = new Set<string>()
  let accepted = 0
  for (let seed = 0; seed < 4000; seed++) {
    const config = randomEnsemble(rolls(seed))
    const lookup = (name: string) => {
      const found = MODELS.get(name)
      return found && { config: found, readyVersions: [1] }
    }
    const { faults } = findConfigFaults(config, {
      lookup: (name) => lookup(name) ?? 'unknown',
      names: () => MODELS.keys(),
      composes: () => [],
    })
    for (const { reason } of faults) seen.add(reason)
    let problem: unknown
    try {
      planEnsemble({ config, lookup })
    } catch (error) {
      problem = error
    }
    if (problem === undefined) accepted += 1
    if ((problem !== undefined) !== faults.length > 0) {
      t.fail(`seed ${seed}: ${String(problem)} but ${JSON.stringify(faults)}`)
    }
  }
  t.ok(accepted > 100, `${accepted} are right`)
  t.same([...seen].toSorted(), [
    'CycleDetected',
    'DatatypeMismatch',
    'LimitExceeded',
    'MissingInput',
    'MultipleProducers',
    'ShapeMismatch',
    'UnknownModel',
    'UnknownTensor',
    'UnreachableStep',
    'UnusedInput',
  ])
})
