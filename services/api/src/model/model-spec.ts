import { ENGINES, type EngineDescriptor, listWords, modelsOf } from '@tutti/engines'
import { z } from 'zod'
import { cel, listMap } from '../schema/cel.ts'
import { duration, objectName, servedName } from '../schema/fields.ts'
import {
  Accelerator,
  DisruptionBudget,
  ModelResources,
  ModelRollout,
  PodTemplate,
  withoutDevices,
} from './model-pods.ts'
import { DEFAULT_REPLICAS, ModelScaling } from './model-scaling.ts'
import {
  MaxBatchSize,
  ModelBatching,
  ModelFormat,
  ModelInstances,
  ModelStorage,
  ResourceInput,
  ResourceOutput,
  StorageUri,
  TENSORS,
  VersionPolicy,
  WarmupSamples,
} from './model-serving.ts'

const ModelSpecFields = z.strictObject({
  modelName: servedName(
    'What clients call the model. Default: metadata.name. It cannot be changed, and is unique among the Models and Ensembles of the namespace.',
  ).optional(),
  modelFormat: ModelFormat,
  storageUri: StorageUri,
  storage: ModelStorage.optional(),
  maxBatchSize: MaxBatchSize.optional().describe(
    'Largest batch; 0 means that the model has no batch dimension. Default: as the repository says.',
  ),
  versionPolicy: VersionPolicy.optional(),
  instances: ModelInstances.optional(),
  inputs: listMap(ResourceInput, 'name', TENSORS)
    .optional()
    .describe(
      "The model's inputs, all of them. Default: as the repository says, else as the model itself does.",
    ),
  outputs: listMap(ResourceOutput, 'name', TENSORS)
    .optional()
    .describe(
      "The model's outputs, all of them. Default: as the repository says, else as the model itself does.",
    ),
  batching: ModelBatching.optional(),
  warmup: WarmupSamples.optional(),
  placement: z
    .enum(['Alone'])
    .optional()
    .describe(
      'Alone: it has pods of its own, also where an Ensemble takes the Models of its steps together.',
    ),
  runsWith: objectName(
    'Name (metadata.name) of another Model of the namespace, in whose pods this one runs. Its resources add to those of the other, whose devices, scaling, image and podTemplate count for both.',
  ).optional(),
  resources: ModelResources.optional().describe(
    'Resources of the container that serves, as in a pod, by names of the form [PREFIX/]NAME. Devices stand in `accelerator` alone.',
  ),
  accelerator: Accelerator.optional(),
  scaling: ModelScaling.optional(),
  rollout: ModelRollout.optional(),
  disruptionBudget: DisruptionBudget.optional(),
  podTemplate: PodTemplate.optional(),
  timeouts: z
    .strictObject({
      load: duration('Time for a pod to load the model. Default 10m.').optional(),
      drain: duration('Time for requests in flight when a pod ends. Default 30s.').optional(),
    })
    .optional()
    .describe('Time limits of the pods.'),
  mayRunTwice: z
    .boolean()
    .optional()
    .describe(
      'The model does no harm if it executes a request twice, so that steps of Ensembles may retry and hedge requests that may have run. Default false.',
    ),
  suspend: z
    .boolean()
    .optional()
    .describe(
      'No pods while this is true, whatever `scaling` says: for queues such as Kueue, or to free devices. What was accepted stays. Default false.',
    ),
  paused: z
    .boolean()
    .optional()
    .describe('The operator leaves the pods as they are while this is true. Default false.'),
})

/** Fields about pods, which a Model in the pods of another one does not have. */
const OF_OWN_PODS = [
  'placement',
  'accelerator',
  'rollout',
  'disruptionBudget',
  'podTemplate',
  'suspend',
] as const
const celOneOf = OF_OWN_PODS.map((field) => `has(self.${field})`).join(' || ')
const celNamed = OF_OWN_PODS.map((field) => `has(self.${field}) ? '${field}'`).join(' : ')

/** The API server fills in a default of `scaling`. */
const OWN_SCALING = ['provider', 'minReplicas', 'maxReplicas', 'target', 'metrics', 'behavior']
  .map((field) => `has(self.scaling.${field})`)
  .concat(`(has(self.scaling.replicas) && self.scaling.replicas != ${DEFAULT_REPLICAS})`)
  .join(' || ')

const sharesInterpreters = ({ sharesInterpreters: shares }: EngineDescriptor) => shares === true
const SHARING = ENGINES.filter(sharesInterpreters).map(({ format }) => format)
const IS_SHARING = SHARING.map((format) => `self.modelFormat.name == '${format}'`).join(' || ')

const waitsForOthers =
  '(has(self.batching.maxQueueDelay) || has(self.batching.preferredBatchSizes))'

/** The fields that users write about a model; the schema of the CRD is made from them. */
export const ModelSpec = cel(
  withoutDevices(ModelSpecFields),
  {
    rule: `!has(self.runsWith) || !(${celOneOf})`,
    message: `got one of ${listWords(OF_OWN_PODS, 'and')}, which are of the Model in whose pods it runs`,
    messageExpression: `'got it beside ' + (${celNamed} : '') + ', which is of the Model in whose pods it runs: want one of them'`,
    field: 'runsWith',
  },
  {
    rule: `!has(self.runsWith) || !has(self.scaling) || !(${OWN_SCALING})`,
    message: 'got it beside scaling, which is of the Model in whose pods it runs: want one of them',
    field: 'runsWith',
  },
  {
    rule: `!has(self.instances) || !has(self.instances.sharedInterpreter) || !self.instances.sharedInterpreter || ${IS_SHARING}`,
    message: `got true for another format than ${listWords(SHARING, 'or')}, want it for ${modelsOf(sharesInterpreters)} alone`,
    field: 'instances.sharedInterpreter',
  },
  {
    rule: `!has(self.maxBatchSize) || self.maxBatchSize != 0 || !has(self.batching) || !${waitsForOthers}`,
    message:
      'got maxBatchSize 0, which lets every request execute alone: want it above 0, or neither maxQueueDelay nor preferredBatchSizes',
    field: 'batching',
  },
  {
    rule: "!has(self.storage) || !has(self.storage.secretRef) || !self.storageUri.matches('^(pvc|hostPath|image):')",
    message:
      'pvc://, hostPath:// and image:// are read without credentials, want no secretRef; an image may need podTemplate.spec.imagePullSecrets',
    field: 'storage.secretRef',
  },
).describe('The model, and the pods that serve it.')
export type ModelSpec = z.infer<typeof ModelSpec>
