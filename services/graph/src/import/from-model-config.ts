import {
  API_VERSION,
  applyModelOverrides,
  describeIssue,
  EnsembleManifest,
  type Manifest,
  ModelManifest,
  resourceNames,
  toModelOverrides,
  toSchemaProblems,
} from '@tutti/api'
import { ENGINES, findEngine, listWords } from '@tutti/engines'
import { assert, ServeError } from '@tutti/errors'
import {
  type ModelInput as ConfigInput,
  type ModelOutput as ConfigOutput,
  isEnsembleConfig,
  type ModelConfig,
  toJsonConfig,
} from '@tutti/model-config'
import { fromConfigDatatype } from '@tutti/tensor'
import { z } from 'zod'
import { type Graph, type GraphStep, readsOf, tensorName, tensorsOf } from '../graph.ts'
import { readConfigGraph } from '../read/read-config.ts'
import { readValidManifest } from '../read/read-manifest.ts'
import { importDevices } from './import-devices.ts'

/** The parts of a manifest that do not follow from a configuration. */
export interface ImportOptions {
  readonly resourceName: string
  /** Name by which clients call the model. */
  readonly servedName: string
  /** Backend of a model, as `selectBackend` found it. */
  readonly backend?: string
  /** Address of the model's directory. */
  readonly storageUri?: string
  /** True for machines without GPUs: models that want them execute on the CPU. */
  readonly forCpu?: boolean
  /** Tells whether a served name belongs to an ensemble. */
  readonly isEnsemble: (servedName: string) => boolean
}

/**
 * Converts a configuration to a manifest, which gives the same configuration when it is served. Only the numbers of GPUs may be
 * others. A Model leaves the fields that it does not name to config.pbtxt. An Ensemble names all fields.
 *
 * @param config - as parsed from config.pbtxt, or the empty one.
 * @throws ServeError UNSUPPORTED if a manifest cannot express a field, with the field of config.pbtxt.
 */
export function fromModelConfig(config: ModelConfig, o: ImportOptions): Manifest {
  return isEnsembleConfig(config) ? fromEnsembleConfig(config, o) : fromConfig(config, o)
}

function fromConfig(config: ModelConfig, o: ImportOptions): ModelManifest {
  const backend = o.backend ?? config.backend
  const format = findEngine(backend)?.format
  if (format === undefined) {
    const got = backend === '' ? `the platform '${config.platform}'` : `'${backend}'`
    const want = listWords(
      ENGINES.map((engine) => engine.backend),
      'or',
    )
    throw unsupported(o, 'backend', `got ${got}, want ${want}`)
  }
  const [inputs, outputs] = [config.input.map(toInput), config.output.map(toOutput)]
  const devices = importDevices(config, { forCpu: o.forCpu === true })
  const manifest = toManifest(ModelManifest, o, {
    modelFormat: { name: format },
    storageUri: o.storageUri,
    // 0 is also what a configuration says that leaves it to the model.
    ...(config.max_batch_size > 0 && { maxBatchSize: config.max_batch_size }),
    ...(areTyped(inputs) && { inputs }),
    ...(areTyped(outputs) && { outputs }),
    ...devices.spec,
  })
  const served = applyModelOverrides(config, toModelOverrides(manifest.spec))
  // The backend, if the repository leaves it to the files' names, follows from the format.
  checkSame(
    o,
    { ...config, instance_group: [...devices.groups] },
    { ...served, backend: config.backend },
  )
  return manifest
}

/** Tells whether tensors are typed fully. Others are left to the repository. */
function areTyped(tensors: readonly { datatype: string | undefined; shape: readonly number[] }[]) {
  return tensors.length > 0 && tensors.every((t) => t.datatype !== undefined && t.shape.length > 0)
}

function toOutput({ name, data_type: type, dims }: ConfigInput | ConfigOutput) {
  return { name, datatype: fromConfigDatatype(type), shape: dims }
}

function toInput(input: ConfigInput) {
  return { ...toOutput(input), ...(input.optional && { optional: true }) }
}

function fromEnsembleConfig(config: ModelConfig, o: ImportOptions): EnsembleManifest {
  const graph = readConfigGraph(config)
  const stepNames = nameSteps(config, graph)
  const manifest = toManifest(EnsembleManifest, o, {
    ...(config.max_batch_size > 0 && { maxBatchSize: config.max_batch_size }),
    inputs: config.input.map(toInput),
    outputs: config.output.map((output) => ({ ...toOutput(output), from: output.name })),
    steps: graph.steps.map((step, i) => toStep(graph, step, { ...o, name: stepNames[i] ?? '' })),
  })
  checkSame(o, { ...config, name: o.servedName }, readValidManifest(manifest).config)
  return manifest
}

function toStep(
  graph: Graph,
  { model, version, inputs, outputs }: GraphStep,
  { name, isEnsemble }: Pick<ImportOptions, 'isEnsemble'> & { readonly name: string },
) {
  const ref = { name: model, ...(version !== -1 && { version }) }
  return {
    name,
    ...(isEnsemble(model) ? { ensembleRef: ref } : { modelRef: ref }),
    inputMap: Object.fromEntries(
      inputs.flatMap(({ name: input, from }) =>
        tensorsOf(from).map((tensor) => [input, tensorName(graph, tensor)]),
      ),
    ),
    outputMap: Object.fromEntries(outputs.map(({ name: output, tensor }) => [output, tensor])),
  }
}

/** Names the steps by DNS labels made of the models' names. No label equals the part before a dot in a tensor's name. */
function nameSteps({ input }: ModelConfig, graph: Graph): readonly string[] {
  const tensors = [
    ...input.map(({ name }) => name),
    ...graph.steps.flatMap((step) => [
      ...readsOf(step).map((tensor) => tensorName(graph, tensor)),
      ...step.outputs.map(({ tensor }) => tensor),
    ]),
  ]
  const prefixes = tensors.filter((name) => name.includes('.')).map((name) => name.split('.', 1)[0])
  const names = resourceNames(new Set(prefixes.flatMap((prefix) => prefix ?? [])))
  return graph.steps.map(({ model }) => names(model))
}

function toManifest<T extends Manifest>(
  schema: z.ZodType<T> & { readonly shape: { readonly kind: { readonly value: T['kind'] } } },
  o: ImportOptions,
  spec: object,
): T {
  const manifest = {
    apiVersion: API_VERSION,
    kind: schema.shape.kind.value,
    metadata: { name: o.resourceName },
    spec: { ...(o.servedName !== o.resourceName && { modelName: o.servedName }), ...spec },
  }
  const { success, data, error } = schema.safeParse(manifest, { error: describeIssue })
  if (success) return data
  const [problem] = toSchemaProblems(schema, error)
  assert(problem !== undefined, 'bug: an error of a schema has no problem')
  throw unsupported(o, z.core.toDotPath([...problem.path]), problem.message)
}

/** @throws ServeError UNSUPPORTED with the first field in which the configurations differ. */
function checkSame(o: ImportOptions, wanted: ModelConfig, got: ModelConfig): void {
  const field = findDifferentField(toJsonConfig(wanted), toJsonConfig(got))
  if (field !== undefined) throw unsupported(o, field, 'a manifest has no words for it')
}

function findDifferentField(a: unknown, b: unknown, path = ''): string | undefined {
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) {
    return Object.is(a, b) ? undefined : path
  }
  const [left, right] = [new Map(Object.entries(a)), new Map(Object.entries(b))]
  for (const key of new Set([...left.keys(), ...right.keys()])) {
    const at = Array.isArray(a) ? `${path}[${key}]` : `${path}${path === '' ? '' : '.'}${key}`
    const found = findDifferentField(left.get(key), right.get(key), at)
    if (found !== undefined) return found
  }
  return undefined
}

function unsupported({ servedName }: ImportOptions, field: string, problem: string): ServeError {
  return new ServeError('UNSUPPORTED', `model '${servedName}': ${field}: ${problem}`, {
    details: { model: servedName, field },
  })
}
