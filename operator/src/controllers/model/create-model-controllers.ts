import type { Metrics } from '@tutti/chassis'
import type { Stored } from '@tutti/kube'
import type { ModelObject } from '../../api/kinds.ts'
import { LatePods } from '../../pods/late-pods.ts'
import type { PodClient } from '../../pods/pod-client.ts'
import { isReady, podAddressOf } from '../../pods/pod-state.ts'
import { maySleep, toScaling } from '../../resources/model-scaling.ts'
import type { StepPodSettings } from '../../resources/step-settings.ts'
import { Applier } from '../../runtime/apply.ts'
import type { Controller } from '../../runtime/controller.ts'
import { StatusWriter } from '../../runtime/status.ts'
import { ReplicaScaler, type ScaledModel } from '../../scaling/replica-scaler.ts'
import { RouterDemand } from '../../scaling/router-demand.ts'
import { INDEX, stepChildrenOf } from '../caches.ts'
import type { ControllerParts } from '../context.ts'
import { ReplicasGuard } from '../replicas-guard.ts'
import { readTransport } from '../router/read-router.ts'
import { routerKeyOf } from '../router/router-trouble.ts'
import { createModelMetrics } from './metrics.ts'
import { createModelController } from './model-controller.ts'
import type { ModelPassOptions } from './model-pass.ts'
import { createModelReader } from './model-reader.ts'
import { type Host, isEnsemble, PodGroups } from './pod-groups.ts'
import { PodObserver } from './pod-observer.ts'
import { readModelSpec } from './read-model-spec.ts'

export interface ModelControllersOptions extends ControllerParts {
  /** Metrics that a scrape shows beside the runtime's. */
  readonly scrapes: Metrics
  readonly podClient: PodClient
  readonly settings: StepPodSettings
  readonly sleepingEnsembles?: SleepingEnsembles
  /** Milliseconds between two looks at the load of pods; see ReplicaScaler. */
  readonly scalingMs?: number
  /** Longest time for one reconcile, in milliseconds; see ControllerOptions. */
  readonly reconcileMs?: number
}

/** The pods of Ensembles that take the Models of their steps together, and that may sleep. */
export interface SleepingEnsembles {
  /** Lists the namespaces that have some. */
  namespaces(): Iterable<string>
  /** Starts a pod for those of a namespace that have one of the models, by served name, and sleep. */
  wake(namespace: string, modelNames: ReadonlySet<string>): void
  /** Starts a pod of an Ensemble. @param key - `namespace/name` of the Ensemble. */
  wakeOne(key: string, uid: string): void
}

/** The controller of Models, the loop that decides on their replicas, and the one that learns for which of them requests wait. */
export interface ModelControllers {
  readonly controller: Controller
  readonly scaler: ReplicaScaler
  readonly demand: RouterDemand
  /** Placement of Models in pods. */
  readonly groups: PodGroups
}

/** Makes the controller and the loops; none has started. */
export function createModelControllers(o: ModelControllersOptions): ModelControllers {
  const { caches, podClient, client, clock, log, metrics } = o
  const reader = createModelReader(caches)
  const groups = createGroups(o, reader)
  const counts = createModelMetrics(o.scrapes, () =>
    caches.models.list().map(({ status }) => status),
  )
  const guard = new ReplicasGuard({ client, clock })
  const scaledIn = (models: readonly Stored<ModelObject>[]): readonly ScaledModel[] =>
    models
      .flatMap((one) => toScaled(one, { reader, groups }))
      .filter(({ key }) => !guard.isLeft(key))
  const demand = new RouterDemand({
    client: podClient,
    namespaces: () => [
      ...caches.models.list().flatMap((one) => (maySleepBySpec(one) ? [namespaceOf(one)] : [])),
      ...(o.sleepingEnsembles?.namespaces() ?? []),
    ],
    routersOf: (namespace) => caches.pods.byIndex(INDEX.router, namespace),
    onWanted: (namespace, names) => {
      scaler.wake(scaledIn(caches.models.inNamespace(namespace)), names)
      o.sleepingEnsembles?.wake(namespace, names)
    },
    clock,
    log: log.child({ controller: 'model-scaling' }),
  })
  const scaler: ReplicaScaler = new ReplicaScaler({
    name: 'model-scaling',
    client: podClient,
    models: () => scaledIn(caches.models.list()),
    isWanted: (namespace, name) => demand.isWanted(namespace, name),
    onDecision: (key) => controller.enqueue(key),
    scalings: counts.scalings,
    clock,
    log: log.child({ controller: 'model-scaling' }),
    ...(o.scalingMs !== undefined && { everyMs: o.scalingMs }),
  })
  const children = stepChildrenOf(caches)
  const passes = {
    ...o,
    reader,
    groups,
    observer: new PodObserver(podClient),
    latePods: new LatePods({ client, clock }),
    scaler,
    wake: (host: Host): void => {
      const { namespace = '', name, uid } = host.metadata
      const pods = isEnsemble(host) ? o.sleepingEnsembles : scaler
      pods?.wakeOne(`${namespace}/${name}`, uid)
    },
    guard,
    applier: new Applier({ client, metrics, caches: children }),
    statuses: new StatusWriter(o),
    counts,
  }
  const controller: Controller = createModelController(passes, children, o.reconcileMs)
  return { controller, scaler, demand, groups }
}

function createGroups(
  { caches, settings }: Pick<ModelControllersOptions, 'caches' | 'settings'>,
  reader: ReturnType<typeof createModelReader>,
): PodGroups {
  const groups = new PodGroups(reader, (namespace) => ({
    ...settings,
    // Undefined before the Router is there.
    transport: readTransport(caches.routers.get(routerKeyOf(namespace))),
  }))
  caches.models.subscribe((event) => {
    if (event.type === 'deleted') groups.forget(event.object.metadata.uid)
  })
  return groups
}

function namespaceOf({ metadata: { namespace = '' } }: Stored<ModelObject>): string {
  return namespace
}

function maySleepBySpec(model: Stored<ModelObject>): boolean {
  const { spec } = readModelSpec(model)
  return spec !== undefined && maySleep(toScaling(spec))
}

/** Builds the record of a Model that the operator scales. */
function toScaled(
  model: Stored<ModelObject>,
  { reader, groups }: Pick<ModelPassOptions, 'reader' | 'groups'>,
): readonly ScaledModel[] {
  if (groups.placementOf(model).host !== model) return []
  const plan = groups.plan(model)
  if (plan === undefined || plan.held !== undefined) return []
  const { scaling, group } = plan
  const replicas = reader.deploymentOf(model)?.spec.replicas
  if (scaling.provider !== 'Native' || replicas === undefined) return []
  const { uid, namespace = '', name } = model.metadata
  const pods = reader
    .podsOf(model)
    .filter(isReady)
    .flatMap((pod) => podAddressOf(pod) ?? [])
  const modelNames = group.models.map(({ modelName }) => modelName)
  const key = `${namespace}/${name}`
  return [{ key, namespace, uid, modelNames, scaling, replicas, pods }]
}
