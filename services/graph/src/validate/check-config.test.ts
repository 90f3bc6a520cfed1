import { type EnsembleStep, type ModelConfig, parseJsonConfig } from '@tutti/model-config'
import t from 'tap'
import type { Problem } from '../check/problem.ts'
import { validateGraph } from '../check/validate-graph.ts'
import { planEnsemble } from '../plan/plan-ensemble.ts'
import { readConfigGraph } from '../read/read-config.ts'
import { checkConfig } from './check-config.ts'
import type { KnownModel } from './find-models.ts'

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
    // A model that runs in the end; the world of a check does not know it.
    { name: 'pending', input: [tensor('x')], output: [tensor('y')] },
    { name: 'faulty', input: [tensor('x')], output: [tensor('y')] },
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

const NAMES = ['one', 'one', 'one', 'two', 'two', 'batched', 'absent', 'pending', 'faulty']

/** Mostly a chain that is right, with a few changes. */
function randomEnsemble(roll: (n: number) => number): ModelConfig {
  const count = 1 + roll(3)
  const names = ['a', ...Array.from({ length: count - 1 }, (_, i) => `t${i}`), 'b']
  const odd = (name: string) =>
    roll(12) === 0 ? (['a', 't0', 'b', 'nowhere'][roll(4)] ?? '') : name
  const steps: Partial<EnsembleStep>[] = Array.from({ length: count }, (_, i) => {
    const model = NAMES[roll(NAMES.length)] ?? ''
    const input: Record<string, string> = { x: odd(names[i] ?? '') }
    const output: Record<string, string> = { y: odd(names[i + 1] ?? '') }
    if (model === 'two' && roll(3) > 0) input['z'] = odd(names[i] ?? '')
    if (roll(20) === 0) output['w'] = odd('t9')
    if (roll(25) === 0) delete input['x']
    return {
      model_name: model,
      model_version: roll(20) === 0 ? 7 : -1,
      model_namespace: roll(60) === 0 ? 'other' : '',
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

/** As models are planned with, and as the check finds them. */
const lookup = (name: string) => {
  const config = MODELS.get(name)
  return config && { config, readyVersions: [1] }
}

const find = (name: string): KnownModel | 'unknown' | 'faulty' => {
  const known = lookup(name)
  if (name === 'faulty') return name
  if (name !== 'pending' || known === undefined) return known ?? 'unknown'
  return { ...known, config: parseJsonConfig({ name }), isPending: true }
}

function isAbsent({ model_name: name, model_version: version }: EnsembleStep): boolean {
  return name === 'absent' || (name !== 'faulty' && version === 7)
}

/** Whether a server refuses the ensemble, whatever the tensors of 'pending' are and once 'faulty' is repaired. */
function mustRefuse(config: ModelConfig): boolean {
  const isRefused = config.ensemble_scheduling?.step.some(isAbsent) === true
  return isRefused || throws(() => validateGraph(config, readConfigGraph(config)))
}

function throws(run: () => unknown): boolean {
  try {
    run()
    return false
  } catch {
    return true
  }
}

const world = { lookup: find, names: () => MODELS.keys(), composes: () => [] }

interface Found {
  readonly faults: readonly Problem[]
  readonly notes: number
  readonly isFaulty: boolean
}

function findIn(config: ModelConfig): Found {
  const { problems: faults } = checkConfig(config, world)
  const notes = faults.filter(({ reason }) => reason === 'SchemaPending').length
  return { faults, notes, isFaulty: faults.length > notes }
}

/** Why what was found cannot be right; undefined if it can. */
function contradict(config: ModelConfig, { faults, notes, isFaulty }: Found): string | undefined {
  const names = config.ensemble_scheduling?.step.map(({ model_name: name }) => name) ?? []
  const isRefused = throws(() => planEnsemble({ config, graph: readConfigGraph(config), lookup }))
  const pending = names.filter((name) => name === 'pending').length
  if (notes !== pending) return `${notes} notes, want ${pending}`
  // Where a model is not known, planning may refuse what cannot be told yet.
  const isKnown = pending === 0 && !names.includes('faulty')
  const mustTell = isKnown ? isRefused : mustRefuse(config)
  const isRight = isFaulty ? isRefused : !mustTell
  return isRight ? undefined : `refused ${isRefused}, but ${JSON.stringify(faults)}`
}

await t.test('there are faults exactly where planning refuses', async (t) => {
  const seen = new Set<string>()
  let accepted = 0
  let noted = 0
  for (let seed = 0; seed < 4000; seed++) {
    const config = randomEnsemble(rolls(seed))
    const found = findIn(config)
    for (const { reason } of found.faults) seen.add(reason)
    const problem = contradict(config, found)
    if (problem !== undefined) t.fail(`seed ${seed}: ${problem}`)
    if (found.isFaulty) continue
    accepted += 1
    if (found.notes > 0) noted += 1
  }
  t.ok(accepted > 100, `${accepted} are right`)
  t.ok(noted > 50, `${noted} are right as far as is known`)
  t.same([...seen].toSorted(), [
    'CycleDetected',
    'DatatypeMismatch',
    'InvalidSpec',
    'LimitExceeded',
    'MissingInput',
    'MultipleProducers',
    'SchemaPending',
    'ShapeMismatch',
    'UnknownModel',
    'UnknownTensor',
    'UnreachableStep',
    'UnusedInput',
  ])
})

/** `reason path` of each fault of an ensemble of one step. */
function checkPending(more: Partial<EnsembleStep>): readonly string[] {
  const maps = { input_map: { x: 'a' }, output_map: { y: 'b' } }
  const step = { ...maps, model_name: 'pending', model_version: -1, ...more }
  const config = parseJsonConfig({
    name: 'e',
    platform: 'ensemble',
    input: [tensor('a')],
    output: [tensor('b')],
    ensemble_scheduling: { step: [step] },
  })
  return findIn(config).faults.map(({ reason, path }) => `${reason} ${path}`)
}

await t.test('an ensemble that runs a pending model is checked itself', async (t) => {
  const note = 'SchemaPending ensemble_scheduling.step[0].model_name'
  t.same(checkPending({}), [note])
  t.same(checkPending({ model_namespace: 'other' }), [
    'InvalidSpec ensemble_scheduling.step[0].model_namespace',
    note,
  ])
  t.same(checkPending({ model_version: 7 }), [
    note,
    'UnknownModel ensemble_scheduling.step[0].model_version',
  ])
})

await t.test('an ensemble without steps is told that, and not what follows', async (t) => {
  const ends = { input: [tensor('a')], output: [tensor('b')] }
  for (const more of [{}, { ensemble_scheduling: {} }]) {
    const { faults } = findIn(
      parseJsonConfig({ name: 'e', platform: 'ensemble', ...ends, ...more }),
    )
    t.equal(faults.length, 1, JSON.stringify(faults))
    t.match(faults[0]?.message, /^ensemble scheduling must be set|^must specify 'step'/)
  }
})
