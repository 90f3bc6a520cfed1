import { z } from 'zod'
import { listAtomic, listMap, text } from './cel.ts'
import { Datatype, tensorName, whole } from './fields.ts'

/*
 * What the operator writes. Bounded like the rest; the bounds are wide, because a status that does not fit is lost.
 */

const MESSAGE = 32_768
/** Names of ControllerRevisions that a pod of a router has in the status; an object of etcd holds 1.5 MB. */
export const MOST_SERVED = 64
/** Pods of a router in the status: those of two rollouts of the largest router. */
export const MOST_PODS = 200
const count = (description: string) => z.int().min(0).max(2_147_483_647).describe(description)
const generation = (description: string) =>
  z.int().min(0).max(Number.MAX_SAFE_INTEGER).describe(description)
const time = (description: string) =>
  text({ max: 64 }).meta({ format: 'date-time' }).describe(description)

/** metav1.Condition. */
export const Condition = z.strictObject({
  type: text({ min: 1, max: 63, pattern: /^[A-Z][A-Za-z]*$/ }).describe('E.g. Ready.'),
  status: z.enum(['True', 'False', 'Unknown']).describe('Whether it is so.'),
  observedGeneration: generation('The generation that this is about.').optional(),
  lastTransitionTime: time('When the status changed last.'),
  reason: text({ min: 1, max: 256, pattern: /^[A-Z][A-Za-z0-9]*$/ }).describe('Why, in a word.'),
  message: text({ max: MESSAGE }).describe('Why, for people.'),
})
export type Condition = z.infer<typeof Condition>

const Conditions = listMap(Condition, 'type', { max: 16 }).describe(
  'What is the case; Ready sums up the others.',
)

/** What every status begins with. */
const REPORTED = {
  observedGeneration: generation('The generation that was looked at last.').optional(),
  conditions: Conditions.optional(),
}

/** What went wrong last; it stays when all is well again. */
export const LastFailure = z.strictObject({
  reason: text({ max: 256 }).describe(
    'E.g. ImagePullBackOff, OOMKilled, Unschedulable, ModelLoadFailed.',
  ),
  message: text({ max: MESSAGE }).describe('The words of the pod, or of Kubernetes.'),
  pod: text({ max: 253 }).optional().describe('Name of the pod.'),
  container: text({ max: 63 }).optional().describe('Name of the container.'),
  exitCode: whole(-2_147_483_648, 2_147_483_647, 'What the container ended with.').optional(),
  time: time('When it was seen.'),
})
export type LastFailure = z.infer<typeof LastFailure>

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
  inputs: listMap(SignatureTensor, 'name', { max: 128 }).describe('What a request brings.'),
  outputs: listMap(SignatureTensor, 'name', { max: 128 }).describe('What a response has.'),
})
export type Signature = z.infer<typeof Signature>

const revision = (description: string) => text({ max: 128 }).describe(description)

export const ModelStatus = z
  .strictObject({
    ...REPORTED,
    modelName: text({ max: 253 }).optional().describe('What clients call it.'),
    replicas: count('Pods.').optional(),
    readyReplicas: count('Pods that are ready.').optional(),
    updatedReplicas: count('Pods of the newest revision.').optional(),
    desiredReplicas: count('Pods that are wanted.').optional(),
    selector: text({ max: 1024 }).optional().describe('Label selector of the pods.'),
    signature: Signature.optional().describe('As the model itself says.'),
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
      .describe('What is served.'),
    lastFailure: LastFailure.optional().describe(
      'What went wrong last; it stays when all is well again.',
    ),
  })
  .describe('What became of it; the operator writes it.')
export type ModelStatus = z.infer<typeof ModelStatus>

export const StepStatus = z.strictObject({
  name: text({ max: 63 }).describe('Name of the step.'),
  ready: z.boolean().describe('Whether a pod, or an Ensemble, can answer.'),
  model: text({ max: 253 }).optional().describe('Served name of what the step runs.'),
  revision: revision('The newest that is ready.').optional(),
  replicas: count('Ready pods.').optional(),
  reason: text({ max: 256 }).optional().describe('Why it is not ready, in a word.'),
  message: text({ max: MESSAGE }).optional().describe('Why it is not ready, for people.'),
})
export type StepStatus = z.infer<typeof StepStatus>

export const EnsembleStatus = z
  .strictObject({
    ...REPORTED,
    modelName: text({ max: 253 }).optional().describe('What clients call it.'),
    steps: listMap(StepStatus, 'name', { max: 64 }).optional().describe('What each step runs.'),
    stepsReady: text({ max: 16 }).optional().describe('E.g. 3/4.'),
    url: text({ max: 512 })
      .optional()
      .describe('Where REST is served: within the cluster, or from outside if it is exposed.'),
    grpcUrl: text({ max: 512 })
      .optional()
      .describe('Where gRPC is served: within the cluster, or from outside if it is exposed.'),
    signature: Signature.optional().describe('What a request brings and a response has.'),
    revision: revision('The ControllerRevision that is accepted.').optional(),
    revisions: listAtomic(
      z.strictObject({
        name: revision('Name of the ControllerRevision.'),
        generation: generation('Of the Ensemble, when it was accepted.'),
      }),
      { max: 64 },
    )
      .optional()
      .describe('Accepted, newest first.'),
  })
  .describe('What became of it; the operator writes it.')
export type EnsembleStatus = z.infer<typeof EnsembleStatus>

const RouterPod = z.strictObject({
  name: text({ max: 253 }).describe('Name of the pod.'),
  ready: z.boolean().describe('Whether the pod takes requests.'),
  revisions: count('Accepted ControllerRevisions that the pod serves, if it answers.').optional(),
  served: listAtomic(text({ max: 253 }), { max: MOST_SERVED })
    .optional()
    .describe(`Their names, sorted; absent if they are more than ${MOST_SERVED}.`),
  message: text({ max: MESSAGE }).optional().describe('Why the pod does not answer.'),
})

export const RouterStatus = z
  .strictObject({
    ...REPORTED,
    replicas: count('Pods.').optional(),
    readyReplicas: count('Pods that are ready.').optional(),
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
export const ROUTER_CONDITIONS = ['Progressing', 'Degraded', 'Ready'] as const
export type RouterConditionType = (typeof ROUTER_CONDITIONS)[number]
