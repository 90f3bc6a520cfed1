import type { RouterSpec } from '@tutti/api'
import { type Event, type Stored, toKeyString } from '@tutti/kube'
import type { RouterObject } from '../../api/kinds.ts'
import type { PodState } from '../../pods/pod-state.ts'
import {
  buildBuiltinsChildren,
  scalingOfBuiltins,
} from '../../resources/build-builtins-children.ts'
import { BUILTINS_NAME } from '../../resources/step-labels.ts'
import type { StepPodSettings } from '../../resources/step-settings.ts'
import type { ChildOutcome } from '../../runtime/apply.ts'
import type { DesiredChild } from '../../runtime/children.ts'
import type { ReconcileContext } from '../../runtime/controller.ts'
import { type Caches, INDEX } from '../caches.ts'
import { findChildProblem } from '../child-problem.ts'
import type { ControllerParts } from '../context.ts'
import type { DeploymentRecord } from '../kept-objects.ts'
import { type OwnScaler, planOwnReplicas } from '../plan-own-replicas.ts'
import { type ReplicasGuard, toWriterText } from '../replicas-guard.ts'
import { areBuiltinsServed, needsBuiltins } from './builtins-need.ts'
import { findPodTrouble } from './router-pods.ts'
import type { BuiltinsState } from './router-status.ts'
import { type RouterTrouble, routerKeyOf } from './router-trouble.ts'

export interface BuiltinsSetOptions extends Pick<ControllerParts, 'caches' | 'clock' | 'views'> {
  readonly settings: StepPodSettings
  /** Scaler that gives the replicas for the provider Native. */
  readonly scaler: OwnScaler
  readonly guard: ReplicasGuard
}

/** The desired objects around the built-ins of a namespace. */
export interface BuiltinsPlan {
  /** Children of the Router; empty if no Ensemble needs them. */
  readonly children: readonly DesiredChild[]
  /** Trouble if another client writes their replicas. */
  readonly writer?: RouterTrouble | undefined
  /** Time of the next look, in milliseconds since the epoch. */
  readonly againAtMs: number
}

type Router = Stored<RouterObject>

const REASONS = { conflict: 'BuiltinsConflict', refused: 'BuiltinsRefused' }
/** How old an answer of a router may be, and time until it is asked again. */
const AGED_MS = 10_000
const NOTHING: BuiltinsPlan = { children: [], againAtMs: Number.POSITIVE_INFINITY }

/** Plans the step pods that run the built-ins of a namespace, and tells how they are. */
export class BuiltinsSet {
  readonly #options: BuiltinsSetOptions

  constructor(o: BuiltinsSetOptions) {
    this.#options = o
  }

  /** Forgets what is known for a Router that is gone. */
  forget(key: string): void {
    this.#options.guard.forget(key)
    this.#options.scaler.forget(key)
  }

  /** Plans the children. They stay until no router executes what needs them. @throws KubeError */
  async plan(router: Router, spec: RouterSpec, context: ReconcileContext): Promise<BuiltinsPlan> {
    const { caches, clock, settings } = this.#options
    const { namespace = '' } = router.metadata
    const isNeeded = needsBuiltins(caches, namespace)
    if (!isNeeded && !(await this.#isServedStill(namespace, context))) return NOTHING
    const { replicas, writer } = await this.#planReplicas(router, spec, context)
    const children = buildBuiltinsChildren({ namespace, spec, settings }, { replicas })
    const againAtMs = isNeeded ? Number.POSITIVE_INFINITY : clock.epochMs() + AGED_MS
    return { children, writer, againAtMs }
  }

  /** Returns the part of the Router's state that is about built-ins; undefined if there are none, and none are needed. */
  stateOf(
    { metadata: { namespace = '' } }: Router,
    o: {
      readonly spec: RouterSpec | undefined
      /** Trouble with the children, if there is any. */
      readonly trouble: RouterTrouble | undefined
      readonly events: readonly Event[]
    },
  ): BuiltinsState | undefined {
    const deployment = deploymentIn(this.#options.caches, namespace)
    if (deployment === undefined && !needsBuiltins(this.#options.caches, namespace))
      return undefined
    const pods = this.podsIn(namespace)
    const trouble = o.trouble ?? findPodTrouble(deployment, pods, o.events, BUILTINS_NAME)
    const scaling = scalingOfBuiltins(o.spec ?? {})
    const fewest = scaling.provider === 'None' ? 1 : scaling.min
    return { deployment, pods, fewest, trouble }
  }

  /** Finds why a child is not as desired. @param outcomes - of the Router's children. @throws the error of a child that may pass. */
  problemOf(outcomes: readonly ChildOutcome[]): RouterTrouble | undefined {
    const own = outcomes.filter(({ key }) => key.name === BUILTINS_NAME)
    return findChildProblem({ outcomes: own }, REASONS)
  }

  podsIn(namespace: string): readonly Stored<PodState>[] {
    return this.#options.caches.pods.byIndex(INDEX.builtins, namespace)
  }

  /** Asks routers, which go on with a revision until they have its successor. Nothing is asked if there are no such pods. */
  async #isServedStill(
    namespace: string,
    { signal, withoutSlot }: ReconcileContext,
  ): Promise<boolean> {
    const { caches, views } = this.#options
    if (deploymentIn(caches, namespace) === undefined) return false
    const told = await withoutSlot(() => views.look(namespace, { maxAgeMs: AGED_MS, signal }))
    return areBuiltinsServed(caches, namespace, told)
  }

  async #planReplicas(router: Router, spec: RouterSpec, { signal }: ReconcileContext) {
    const { caches, scaler, guard } = this.#options
    const { namespace = '', uid } = router.metadata
    const key = routerKeyOf(namespace)
    const deployment = deploymentIn(caches, namespace)
    const scaling = scalingOfBuiltins(spec)
    const own = { key, uid, scaling, deployment, scaler, guard, signal }
    const { replicas, replicasWriter: writer } = await planOwnReplicas(own)
    if (writer === undefined || deployment === undefined) return { replicas }
    const text = toWriterText(writer, deployment)
    const message = `${text}; want it deleted, and builtins.scaling of the Router changed if they are not enough`
    return { replicas: undefined, writer: { reason: 'ReplicasNotOwned', message } }
  }
}

/** Returns the Deployment of the pods with the built-ins of a namespace, if there is one. */
export function deploymentIn(
  { deployments }: Pick<Caches, 'deployments'>,
  namespace: string,
): Stored<DeploymentRecord> | undefined {
  return deployments.get(toKeyString({ namespace, name: BUILTINS_NAME }))
}
