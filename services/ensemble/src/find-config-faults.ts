import { nearestName, ServeError } from '@tutti/errors'
import { type EnsembleStep, isEnsembleConfig, type ModelConfig } from '@tutti/model-config'
import { configByName } from './composing-models.ts'
import { type ConfigFault, configStepPath, toMappingFault } from './config-fault.ts'
import { findWay } from './graph-walks.ts'
import type { KnownModel } from './manifest/check-ensemble.ts'
import { type AcceptedReason, hintOf } from './manifest/ensemble-fault.ts'
import { completeEnsembleConfig, planEnsemble } from './plan-ensemble.ts'
import { findStepCycle } from './step-dependencies.ts'
import { findMappingFaults } from './tensor-mapping.ts'
import { fieldProblems, validateEnsembleConfig } from './validate-ensemble-config.ts'

/** A model of the repositories whose config can be read. */
export interface FoundModel extends KnownModel {
  /** True if the model's tensors are known only once its code runs. */
  readonly isPending?: boolean
}

/** The other models of the repositories. */
export interface ConfigWorld {
  /** Finds a model by name; 'unknown' if there is none, 'faulty' if it has problems of its own. */
  readonly lookup: (name: string) => FoundModel | 'unknown' | 'faulty'
  readonly names: () => Iterable<string>
  /** Finds the models that an ensemble runs; none for other models. */
  readonly composes: (name: string) => readonly string[]
}

/** The result of an ensemble's check. */
export interface CheckedConfig {
  readonly faults: readonly ConfigFault[]
  /** Configuration of the ensemble: completed if it could be planned, else as written. */
  readonly config: ModelConfig
}

type Report = (reason: AcceptedReason, path: string, message: string) => void

/**
 * Finds all faults of an ensemble in config.pbtxt, except those that follow from another fault. Faults that only planning finds
 * are looked for only if there are no others but notes (SchemaPending).
 *
 * The rules are those of `validateEnsembleConfig`, which answers a load request with Triton's text of the first fault. An
 * author needs all faults, each with its field. `checkEnsemble` does this for a manifest, whose graph stands in other fields. A
 * property test compares the faults of a configuration with the faults that planning refuses.
 *
 * @param config - normalised.
 */
export function findConfigFaults(config: ModelConfig, world: ConfigWorld): CheckedConfig {
  const faults: ConfigFault[] = []
  const report: Report = (reason, path, message) => faults.push({ reason, path, message })
  for (const [text, field = ''] of fieldProblems(config)) {
    report('InvalidSpec', field, text)
  }
  // Without steps, which is told above, each input and output would be told too.
  if (stepsOf(config).length > 0) checkGraph(config, report)
  const models = findModels(config, world, report)
  const configs = new Map([...models].map(([name, known]) => [name, known.config]))
  for (const fault of findMappingFaults(config, configByName(configs)).faults) {
    faults.push(toMappingFault(config, fault))
  }
  const isWhole = stepsOf(config).every(({ model_name: name }) => models.has(name))
  if (faults.some(({ reason }) => reason !== 'SchemaPending')) return { faults, config }
  const planned = plan(config, isWhole ? models : undefined)
  return { ...planned, faults: [...planned.faults, ...faults] }
}

/** @param models - undefined if not all are known: then only the graph is looked at. */
function plan(
  config: ModelConfig,
  models: ReadonlyMap<string, KnownModel> | undefined,
): CheckedConfig {
  try {
    if (models === undefined) {
      validateEnsembleConfig(config)
      return { faults: [], config }
    }
    const lookup = (name: string) => {
      const known = models.get(name)
      return known && { config: known.config, readyVersions: known.readyVersions ?? [1] }
    }
    return { faults: [], config: completeEnsembleConfig(planEnsemble({ config, lookup })) }
  } catch (error) {
    const { message } = ServeError.from(error)
    return { faults: [{ reason: 'InvalidSpec', path: 'ensemble_scheduling', message }], config }
  }
}

function stepsOf(config: ModelConfig) {
  return config.ensemble_scheduling?.step ?? []
}

interface Made {
  readonly step: number
  readonly output: string
}

/** Tensors that exist, and tensors that are read. */
interface Tensors {
  readonly inputs: ReadonlySet<string>
  readonly made: ReadonlyMap<string, Made>
  /** Tensors that are read, with those that a reported name may mean. */
  readonly used: Set<string>
}

function checkGraph(config: ModelConfig, report: Report): void {
  const made = findMade(config, report)
  const inputs = new Set(config.input.map(({ name }) => name))
  const tensors = { inputs, made, used: new Set<string>() }
  for (const [index, step] of stepsOf(config).entries()) {
    const path = configStepPath(index)
    checkStep(step, path, report)
    for (const [port, tensor] of Object.entries(step.input_map)) {
      checkRead(tensors, { path: `${path}.input_map[${port}]`, port, tensor }, report)
    }
  }
  checkEnds(config, tensors, report)
  checkCycles(config, tensors, report)
}

/** Reports the faults that a step alone shows. */
function checkStep(step: EnsembleStep, path: string, report: Report): void {
  const { model_name: model, model_namespace: namespace } = step
  if (model === '') report('InvalidSpec', `${path}.model_name`, 'got none, want a model')
  if (namespace !== '') {
    const problem = `got '${namespace}', want '': model namespacing is off`
    report('InvalidSpec', `${path}.model_namespace`, problem)
  }
  if (Object.keys(step.input_map).length === 0) {
    report('MissingInput', path, `got no input_map, want one: '${model}' reads something`)
  }
  if (Object.keys(step.output_map).length === 0) {
    report('UnreachableStep', path, 'got no output_map, want one, or no such step')
  }
}

function findMade(config: ModelConfig, report: Report): ReadonlyMap<string, Made> {
  const made = new Map<string, Made>()
  for (const [step, { output_map: map }] of stepsOf(config).entries()) {
    for (const [output, tensor] of Object.entries(map)) {
      const other = made.get(tensor)
      if (other === undefined) made.set(tensor, { step, output })
      else {
        const maker = `${configStepPath(other.step)}.output_map[${other.output}]`
        const problem = `'${tensor}' is what ${maker} makes; want another name`
        report('MultipleProducers', `${configStepPath(step)}.output_map[${output}]`, problem)
      }
    }
  }
  return made
}

function checkRead(
  { inputs, made, used }: Tensors,
  o: { readonly path: string; readonly port: string; readonly tensor: string },
  report: Report,
): void {
  const { path, port, tensor } = o
  used.add(tensor)
  const isKnown = (name: string): boolean => inputs.has(name) || made.has(name)
  if (isKnown(tensor)) return
  if (isKnown(port)) {
    used.add(port)
    const problem = `no ensemble tensor '${tensor}', but '${port}' is one: the key is the model's input and the value the tensor that feeds it; want { key: "${tensor}" value: "${port}" }`
    return report('UnknownTensor', path, problem)
  }
  reportUnknown({ inputs, made, used }, { path, tensor }, report)
}

function reportUnknown(
  { inputs, made, used }: Tensors,
  { path, tensor }: { readonly path: string; readonly tensor: string },
  report: Report,
): void {
  const names = [...inputs, ...made.keys()]
  const near = nearestName(tensor, names)
  if (near !== undefined) used.add(near)
  report(
    'UnknownTensor',
    path,
    `no step makes '${tensor}', and it is no input${hintOf(tensor, names)}`,
  )
}

/** Finds outputs that nothing makes, and tensors that nothing reads. */
function checkEnds({ input, output }: ModelConfig, tensors: Tensors, report: Report): void {
  const { inputs, made, used } = tensors
  for (const [i, { name }] of output.entries()) {
    used.add(name)
    if (inputs.has(name) || made.has(name)) continue
    reportUnknown(tensors, { path: `output[${i}].name`, tensor: name }, report)
  }
  for (const [i, { name }] of input.entries()) {
    if (used.has(name) || made.has(name)) continue
    report('UnusedInput', `input[${i}].name`, `no step reads '${name}'; want it read, or removed`)
  }
  for (const [tensor, { step, output: port }] of made) {
    if (used.has(tensor)) continue
    const path = `${configStepPath(step)}.output_map[${port}]`
    report(
      'UnreachableStep',
      path,
      `nothing reads '${tensor}'; want it read or among the outputs, or not mapped`,
    )
  }
}

/** Reports one cycle after another, until none is left if the first step of each waited for nothing. */
function checkCycles(config: ModelConfig, { inputs, made }: Tensors, report: Report): void {
  const steps = stepsOf(config)
  const waits: (readonly number[])[] = steps.map(({ input_map: map }) =>
    Object.values(map).flatMap((name) => (inputs.has(name) ? [] : (made.get(name)?.step ?? []))),
  )
  for (;;) {
    const cycle = findStepCycle(waits) ?? []
    const [first] = cycle
    if (first === undefined) return
    const way = [...cycle, first].map((i) => `step[${i}] (${steps[i]?.model_name})`).join(' -> ')
    report('CycleDetected', configStepPath(first), `steps wait for one another: ${way}`)
    waits[first] = []
  }
}

/** Looks up the models of the steps. A model that contains the ensemble itself is not looked up, so that this ends. */
function findModels(
  config: ModelConfig,
  world: ConfigWorld,
  report: Report,
): ReadonlyMap<string, KnownModel> {
  const models = new Map<string, KnownModel>()
  for (const [index, { model_name: model, model_version: version }] of stepsOf(config).entries()) {
    const path = `${configStepPath(index)}.model_name`
    if (model === '') continue
    const way = findWay(model, config.name, world.composes)
    if (way !== undefined) {
      const problem = `an ensemble cannot contain itself: ${[config.name, ...way].join(' -> ')}`
      report('CycleDetected', path, problem)
      continue
    }
    const known = world.lookup(model)
    if (known === 'unknown') {
      report('UnknownModel', path, `there is no model '${model}'${hintOf(model, world.names())}`)
    } else if (known !== 'faulty') {
      if (known.isPending === true) {
        const problem = `the tensors of '${model}' are known only once its code runs; want inputs and outputs in its config.pbtxt to have them checked`
        report('SchemaPending', path, problem)
      } else models.set(model, known)
      const there = known.readyVersions
      if (version === -1 || there === undefined || there.includes(version)) continue
      const problem = `got ${version}, want a version of '${model}' that is served: ${there.join(', ')}`
      report('UnknownModel', `${configStepPath(index)}.model_version`, problem)
    }
  }
  return models
}

/** Lists the models that the steps of an ensemble run; none for another model. */
export function composedModels(config: ModelConfig | undefined): readonly string[] {
  return config === undefined || !isEnsembleConfig(config)
    ? []
    : stepsOf(config).map(({ model_name: name }) => name)
}
