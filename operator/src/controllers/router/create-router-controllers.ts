import { BUILTIN_HOST } from '@tutti/builtins'
import type { Metrics } from '@tutti/chassis'
import type { Stored } from '@tutti/kube'
import type { RouterObject } from '../../api/kinds.ts'
import type { PodClient } from '../../pods/pod-client.ts'
import { isReady, podAddressOf } from '../../pods/pod-state.ts'
import { scalingOfBuiltins } from '../../resources/build-builtins-children.ts'
import type { StepPodSettings } from '../../resources/step-settings.ts'
import type { Controller } from '../../runtime/controller.ts'
import { ReplicaScaler, type ScaledModel } from '../../scaling/replica-scaler.ts'
import { type Caches, INDEX } from '../caches.ts'
import { ReplicasGuard } from '../replicas-guard.ts'
import { BuiltinsSet, deploymentIn } from './builtins-set.ts'
import { createBuiltinsScalings } from './metrics.ts'
import { readRouter } from './read-router.ts'
import { createRouterController } from './router-controller.ts'
import type { RouterControllerOptions } from './router-reconciler.ts'
import { routerKeyOf } from './router-trouble.ts'

export interface RouterControllersOptions extends Omit<RouterControllerOptions, 'builtins'> {
  /** Metrics that a scrape shows beside the runtime's. */
  readonly scrapes: Metrics
  readonly podClient: PodClient
  /** Settings of the pods with built-ins. */
  readonly settings: StepPodSettings
  /** Milliseconds between two looks at the load of pods; see ReplicaScaler. */
  readonly scalingMs?: number
}

/** The controller of Routers, and the loop that decides on the replicas of built-ins. */
export interface RouterControllers {
  readonly controller: Controller
  readonly scaler: ReplicaScaler
}

/** Makes the controller and the loop; neither has started. */
export function createRouterControllers(o: RouterControllersOptions): RouterControllers {
  const { caches, podClient, client, clock, log } = o
  const guard = new ReplicasGuard({ client, clock })
  const name = 'builtins-scaling'
  const scaler = new ReplicaScaler({
    name,
    client: podClient,
    models: () =>
      caches.routers
        .list()
        .flatMap((router) => toScaled(router, caches))
        .filter(({ key }) => !guard.isLeft(key)),
    onDecision: (key) => controller.enqueue(key),
    scalings: createBuiltinsScalings(o.scrapes),
    clock,
    log: log.child({ controller: name }),
    ...(o.scalingMs !== undefined && { everyMs: o.scalingMs }),
  })
  const builtins = new BuiltinsSet({ ...o, scaler, guard })
  const controller: Controller = createRouterController({ ...o, builtins })
  return { controller, scaler }
}

/** Builds the record of built-ins that the operator scales; an empty list if there are none, or another client scales them. */
function toScaled(router: Stored<RouterObject>, caches: Caches): readonly ScaledModel[] {
  const { uid, namespace = '' } = router.metadata
  const replicas = deploymentIn(caches, namespace)?.spec.replicas
  // An image that is not allowed changes nothing here.
  const { spec } = readRouter(router, { allowsImage: true, allowsHostAccess: true })
  if (replicas === undefined || spec === undefined) return []
  const scaling = scalingOfBuiltins(spec)
  if (scaling.provider !== 'Native') return []
  const pods = caches.pods
    .byIndex(INDEX.builtins, namespace)
    .filter(isReady)
    .flatMap((pod) => podAddressOf(pod) ?? [])
  const key = routerKeyOf(namespace)
  return [{ key, namespace, uid, modelNames: [BUILTIN_HOST], scaling, replicas, pods }]
}
