import { z } from 'zod'
import { listAtomic, listMap, text } from '../schema/cel.ts'
import { Datatype, quantities, tensorName, whole } from '../schema/fields.ts'

/*
 * The status that the operator writes. Bounded like the rest; the bounds are wide, because a status that does not fit is lost.
 */

const MESSAGE = 32_768
/** Most names of ControllerRevisions that the status lists for one pod of a router: an object of etcd holds only 1.5 MB. */
export const MOST_SERVED = 64
/** Most pods that the status of a router lists: the pods of the largest router, twice. */
export const MOST_PODS = 200
/**
 * The API server gives each new object this generation as the one that was seen, so that tools with kstatus, such as Flux,
 * do not take an object that has no conditions yet for ready.
 */
export const UNSEEN = -1
const count = (description: string) => z.int().min(0).max(2_147_483_647).describe(description)
const generation = (description: string) =>
  z.int().min(0).max(Number.MAX_SAFE_INTEGER).describe(description)
const time = (description: string) =>
  text({ max: 64 }).meta({ format: 'date-time' }).describe(description)

/** metav1.Condition. */
export const Condition = z.strictObject({
  type: text({ min: 1, max: 63, pattern: /^[A-Z][A-Za-z]*$/ }).describe(
    'Type of the condition, e.g. Ready.',
  ),
  status: z.enum(['True', 'False', 'Unknown']).describe('True, False or Unknown.'),
  observedGeneration: generation('Generation that the condition describes.').optional(),
  lastTransitionTime: time('Time of the last change of the status.'),
  reason: text({ min: 1, max: 256, pattern: /^[A-Z][A-Za-z0-9]*$/ }).describe(
    'Reason in one word.',
  ),
  message: text({ max: MESSAGE }).describe('Explanation of the reason.'),
})
export type Condition = z.infer<typeof Condition>

const Conditions = listMap(Condition, 'type', { max: 16 }).describe(
  'Conditions of the resource. Ready sums up the others.',
)

/** The fields that every status begins with. */
const REPORTED = {
  observedGeneration: z
    .int()
    .min(UNSEEN)
    .max(Number.MAX_SAFE_INTEGER)
    .describe('Newest generation that the operator has seen; -1: none.')
    .optional(),
  conditions: Conditions.optional(),
}

/** The last failure of a Model's pods. It stays in the status after the failure is over. */
export const LastFailure = z.strictObject({
  reason: text({ max: 256 }).describe(
    'Reason, e.g. ImagePullBackOff, OOMKilled, Unschedulable or ModelLoadFailed.',
  ),
  message: text({ max: MESSAGE }).describe('Message of the pod or of Kubernetes.'),
  pod: text({ max: 253 }).optional().describe('Name of the pod.'),
  container: text({ max: 63 }).optional().describe('Name of the container.'),
  exitCode: whole(-2_147_483_648, 2_147_483_647, 'Exit code of the container.').optional(),
  time: time('Time at which the operator saw it.'),
})
export type LastFailure = z.infer<typeof LastFailure>

/**
 * How far the start of a Model's pods is, by the pod that is furthest of those that do not serve yet. `startText` makes one short
 * text of it.
 */
export const ModelStart = z.strictObject({
  pod: text({ max: 253 }).describe('Name of the pod.'),
  waitsFor: z
    .enum(['Node', 'Image', 'Files', 'Load', 'Routers'])
    .describe(
      'The thing that the pod waits for. Node: a node with room. Image: the image and volumes of its next container. Files: the files of the model. Load: the process, which loads the model. Routers: routers, which take up what it serves.',
    ),
  message: text({ max: 1024 }).describe(
    'The same in words, e.g. "its files, 30 % of 4.3 GB" or "its load: version 1, engine python".',
  ),
  since: time('Time at which this began.'),
  bytes: whole(
    0,
    Number.MAX_SAFE_INTEGER,
    'Bytes of the files that have come, rounded down to a tenth of all.',
  ).optional(),
  totalBytes: whole(
    0,
    Number.MAX_SAFE_INTEGER,
    'Bytes of all files, if the server says it.',
  ).optional(),
})
export type ModelStart = z.infer<typeof ModelStart>

/** Resources of the container that serves a Model, after all defaults. */
export const EffectiveResources = z.strictObject({
  requests: quantities('Amounts that are reserved for a pod.').optional(),
  limits: quantities('Largest amounts that a pod may use.').optional(),
  from: text({ max: 2048 }).describe(
    'Where each comes from, e.g. "cpu: default of the engine onnxruntime; memory: spec.resources".',
  ),
})
export type EffectiveResources = z.infer<typeof EffectiveResources>

const SignatureTensor = z.strictObject({
  name: tensorName('Name of the tensor.'),
  datatype: Datatype,
  shape: listAtomic(z.int().min(-1).max(Number.MAX_SAFE_INTEGER), { max: 64 }).describe(
    'Extents without the batch dimension; -1 for any.',
  ),
  optional: z.boolean().optional().describe('A request may leave it out.'),
})

/** Inputs and outputs as clients see them. */
export const Signature = z.strictObject({
  maxBatchSize: count('0: no batch dimension.'),
  decoupled: z.boolean().describe('A request may have any number of responses.'),
  inputs: listMap(SignatureTensor, 'name', { max: 128 }).describe('Inputs of a request.'),
  outputs: listMap(SignatureTensor, 'name', { max: 128 }).describe('Outputs of a response.'),
})
export type Signature = z.infer<typeof Signature>

const revision = (description: string) => text({ max: 128 }).describe(description)

const ADDRESS = text({ max: 512 })
  .optional()
  .describe('Where REST is served: within the cluster, or from outside if it is exposed.')
const GRPC_ADDRESS = text({ max: 512 })
  .optional()
  .describe('Where gRPC is served: within the cluster, or from outside if it is exposed.')
const SELECTOR = text({ max: 1024 }).optional().describe('Label selector of the pods.')
const PODS_READY = text({ max: 32 }).optional().describe('Ready pods and wanted pods, e.g. 2/3.')

export const ModelStatus = z
  .strictObject({
    ...REPORTED,
    modelName: text({ max: 253 }).optional().describe('Name that clients use.'),
    url: ADDRESS,
    grpcUrl: GRPC_ADDRESS,
    podsReady: PODS_READY,
    replicas: count('Pods.').optional(),
    readyReplicas: count('Pods that are ready.').optional(),
    updatedReplicas: count('Pods of the newest revision.').optional(),
    desiredReplicas: count('Desired number of pods.').optional(),
    selector: SELECTOR,
    signature: Signature.optional().describe('Inputs and outputs that the loaded model has.'),
    latestReadyRevision: revision('The newest revision that was ready.').optional(),
    revisions: listAtomic(
      z.strictObject({
        version: whole(0, Number.MAX_SAFE_INTEGER, 'Version of the model.'),
        revision: revision('Digest of the version.'),
        replicas: count('Ready pods that serve it.'),
      }),
      { max: 64 },
    )
      .optional()
      .describe('Versions that are served.'),
    resources: EffectiveResources.optional().describe(
      'Resources of the container that serves, in the newest pods.',
    ),
    start: ModelStart.optional().describe(
      'How far the next pod is that does not serve yet; absent if all do.',
    ),
    lastFailure: LastFailure.optional().describe(
      'The last failure. It stays after the failure is over.',
    ),
  })
  .describe('Status of the resource, as the operator sees it.')
export type ModelStatus = z.infer<typeof ModelStatus>

export const StepStatus = z.strictObject({
  name: text({ max: 63 }).describe('Name of the step.'),
  ready: z.boolean().describe('Whether a pod, or an Ensemble, can answer.'),
  model: text({ max: 253 })
    .optional()
    .describe('Served name of the Model or Ensemble that the step runs.'),
  revision: revision('Newest revision that is ready.').optional(),
  replicas: count('Ready pods.').optional(),
  reason: text({ max: 256 }).optional().describe('Reason in one word, if the step is not ready.'),
  message: text({ max: MESSAGE }).optional().describe('Explanation, if the step is not ready.'),
})
export type StepStatus = z.infer<typeof StepStatus>

export const EnsembleStatus = z
  .strictObject({
    ...REPORTED,
    modelName: text({ max: 253 }).optional().describe('Name that clients use.'),
    steps: listMap(StepStatus, 'name', { max: 64 }).optional().describe('State of each step.'),
    stepsReady: text({ max: 16 }).optional().describe('Ready steps and all steps, e.g. 3/4.'),
    url: ADDRESS,
    grpcUrl: GRPC_ADDRESS,
    signature: Signature.optional().describe('Inputs of a request and outputs of a response.'),
    revision: revision('The ControllerRevision that is accepted.').optional(),
    revisions: listAtomic(
      z.strictObject({
        name: revision('Name of the ControllerRevision.'),
        generation: generation('Generation of the Ensemble that was accepted.'),
      }),
      { max: 64 },
    )
      .optional()
      .describe('Accepted ControllerRevisions, newest first.'),
  })
  .describe('Status of the resource, as the operator sees it.')
export type EnsembleStatus = z.infer<typeof EnsembleStatus>

const RouterPod = z.strictObject({
  name: text({ max: 253 }).describe('Name of the pod.'),
  ready: z.boolean().describe('Whether the pod takes requests.'),
  revisions: count('Accepted ControllerRevisions that the pod serves, if it answers.').optional(),
  served: listAtomic(text({ max: 253 }), { max: MOST_SERVED })
    .optional()
    .describe(`Their names, sorted; absent if they are more than ${MOST_SERVED}.`),
  message: text({ max: MESSAGE }).optional().describe('Error, if the pod does not answer.'),
})

export const RouterStatus = z
  .strictObject({
    ...REPORTED,
    podsReady: PODS_READY,
    replicas: count('Pods.').optional(),
    readyReplicas: count('Pods that are ready.').optional(),
    selector: SELECTOR,
    builtins: z
      .strictObject({
        podsReady: PODS_READY,
        replicas: count('Pods.').optional(),
        readyReplicas: count('Pods that are ready.').optional(),
      })
      .optional()
      .describe('The pods with built-ins; absent while no Ensemble needs them.'),
    pods: listMap(RouterPod, 'name', { max: MOST_PODS })
      .optional()
      .describe(`The pods, by name; at most ${MOST_PODS} of them.`),
  })
  .describe('How the router is; the operator writes it.')
export type RouterStatus = z.infer<typeof RouterStatus>

/** Condition types of a Model. `Ready` sums up the others. */
export const MODEL_CONDITIONS = [
  'Accepted',
  'ArtifactsReady',
  'SchemaVerified',
  'WorkloadAvailable',
  'Routable',
  'Progressing',
  'Degraded',
  'Suspended',
  'Ready',
] as const
export type ModelConditionType = (typeof MODEL_CONDITIONS)[number]

/** Condition types of an Ensemble. `Ready` sums up the others. */
export const ENSEMBLE_CONDITIONS = [
  'Accepted',
  'StepsReady',
  'RouterReady',
  'Routable',
  'Progressing',
  'Degraded',
  'Ready',
] as const
export type EnsembleConditionType = (typeof ENSEMBLE_CONDITIONS)[number]

/** Condition types of a Router. */
export const ROUTER_CONDITIONS = ['Progressing', 'Degraded', 'BuiltinsReady', 'Ready'] as const
export type RouterConditionType = (typeof ROUTER_CONDITIONS)[number]
