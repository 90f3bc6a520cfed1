import type { EffectiveResources, ModelSpec, ModelStatus } from '@tutti/api'
import type { Failure, Stored } from '@tutti/kube'
import type { ModelObject } from '../../api/kinds.ts'
import type { PodState } from '../../pods/pod-state.ts'
import type { RouterView } from '../../pods/router-views.ts'
import type { Scaling } from '../../resources/model-scaling.ts'
import type { ChildOutcome } from '../../runtime/apply.ts'
import { findCondition } from '../../runtime/conditions.ts'
import type { ConditionState } from '../condition-state.ts'
import { templateOf } from '../deployment-state.ts'
import type { DeploymentState } from '../kept-objects.ts'
import type { ReplicasWriter } from '../replicas-guard.ts'
import type { RouterTrouble } from '../router/router-trouble.ts'
import type { Refusal } from './check-model.ts'
import type { ModelPod, VersionRevision } from './model-pods.ts'

/** All facts about a Model from which its status follows. */
export interface ModelWorld {
  readonly model: Stored<ModelObject>
  /** The name by which clients call the Model. */
  readonly modelName: string
  /** Status before this pass. */
  readonly before: ModelStatus
  /** Parsed spec; absent if it cannot be read. */
  readonly spec?: ModelSpec | undefined
  readonly scaling?: Scaling | undefined
  /** Reason why the operator changes nothing for the Model. */
  readonly refusal?: Refusal | undefined
  /** Resources of the desired pod template; absent if the spec is refused. */
  readonly resources?: EffectiveResources | undefined
  /** The owner of `deployment`, in whose pods it runs. */
  readonly host: {
    /** Kind and name, e.g. `Model "yolo"`. */
    readonly title: string
    /** True if it is the Model itself. */
    readonly isItself: boolean
    /** Labels that select the host's pods. */
    readonly labels: Readonly<Record<string, string>>
  }
  /** The `rollout` of its host, which counts for its pods. */
  readonly rollout?: ModelSpec['rollout'] | undefined
  /** Reason why it has pods of its own although an Ensemble asks for it. */
  readonly apart?: string | undefined
  /** Reason why the pods are left as they are, for the sake of another Model in them. */
  readonly hold?: Omit<Refusal, 'condition'> | undefined
  /** Digest of the desired pod template. */
  readonly template?: string | undefined
  /** Deployment as it is now. */
  readonly deployment?: DeploymentState | undefined
  /** Results of the desired children. */
  readonly outcomes: readonly ChildOutcome[]
  /** Other client to which the replicas of the Deployment are left. */
  readonly replicasWriter?: ReplicasWriter | undefined
  readonly pods: readonly ModelPod[]
  /** Versions that are accepted, so that routers may use them. */
  readonly accepted: readonly VersionRevision[]
  /** Answers of all ready routers. */
  readonly routers: readonly RouterView[]
  /** Trouble of the namespace's router. */
  readonly trouble?: RouterTrouble | undefined
  /** The fault of the Model's pods. */
  readonly failure?: Failure | undefined
}

/**
 * Returns the previous condition if it is of this generation and not Unknown. It serves where nothing can be seen now, without
 * pods say.
 */
export function asBefore(
  { before, model }: Pick<ModelWorld, 'before' | 'model'>,
  type: string,
): ConditionState | undefined {
  const known = findCondition(before.conditions, type)
  if (known?.observedGeneration !== model.metadata.generation) return undefined
  return known?.status === 'Unknown' ? undefined : known
}

/** True if pods are left as they are and still have an earlier template, so that they are of an earlier spec. */
export function isLeftAsWas({
  spec,
  hold,
  deployment,
  template,
}: Pick<ModelWorld, 'spec' | 'hold' | 'deployment' | 'template'>): boolean {
  const isHeld = spec?.paused === true || hold !== undefined
  if (!isHeld || deployment === undefined) return false
  return templateOf(deployment) !== template
}

/** True for a pod of the Deployment of a Model's host, and not of an earlier home. */
export function isOfHost(
  { metadata: { labels = {} } }: PodState,
  host: Pick<ModelWorld['host'], 'labels'>,
): boolean {
  return Object.entries(host.labels).every(([name, value]) => labels[name] === value)
}

/** Writes a number with its noun: `1 pod`, `2 pods`. */
export function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`
}
