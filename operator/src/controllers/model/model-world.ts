import type { ModelSpec, ModelStatus } from '@tutti/api'
import type { Failure, Stored } from '@tutti/kube'
import type { ModelObject } from '../../api/kinds.ts'
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

/** All that is known of a Model when its status is written. */
export interface ModelWorld {
  readonly model: Stored<ModelObject>
  /** The name by which clients call the Model. */
  readonly modelName: string
  /** The status as it was. */
  readonly before: ModelStatus
  /** Absent if it cannot be read. */
  readonly spec?: ModelSpec | undefined
  readonly scaling?: Scaling | undefined
  /** Why nothing is changed for it. */
  readonly refusal?: Refusal | undefined
  /** Digest of the pod template that is wanted. */
  readonly template?: string | undefined
  /** As it is now. */
  readonly deployment?: DeploymentState | undefined
  /** Results of the desired children. */
  readonly outcomes: readonly ChildOutcome[]
  /** Somebody else to whom the replicas of the Deployment are left. */
  readonly replicasWriter?: ReplicasWriter | undefined
  readonly pods: readonly ModelPod[]
  /** The versions that routers may use. */
  readonly accepted: readonly VersionRevision[]
  /** The views of every ready router. */
  readonly routers: readonly RouterView[]
  /** Trouble of the namespace's router. */
  readonly trouble?: RouterTrouble | undefined
  /** The fault of the Model's pods. */
  readonly failure?: Failure | undefined
}

/** Finds the condition of before, if it is of this generation, where nothing can be seen of it now: there are no pods, say. */
export function asBefore({ before, model }: ModelWorld, type: string): ConditionState | undefined {
  const known = findCondition(before.conditions, type)
  if (known?.observedGeneration !== model.metadata.generation) return undefined
  return known?.status === 'Unknown' ? undefined : known
}

/** True for a Model that was edited while it is paused: its pods, and its Deployment, are of the spec before. */
export function isLeftAsWas({
  spec,
  deployment,
  template,
}: Pick<ModelWorld, 'spec' | 'deployment' | 'template'>): boolean {
  if (spec?.paused !== true || deployment === undefined) return false
  return templateOf(deployment) !== template
}

/** `1 pod`, `2 pods`. */
export function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`
}
