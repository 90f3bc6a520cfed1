import type { Metrics } from '@tutti/chassis'
import { type KubeObject, type Stored, toKeyString } from '@tutti/kube'
import { ENSEMBLE, type EnsembleObject } from '../../api/kinds.ts'
import type { PodClient } from '../../pods/pod-client.ts'
import { isReady, podAddressOf } from '../../pods/pod-state.ts'
import { maySleep, toScaling } from '../../resources/model-scaling.ts'
import { Applier } from '../../runtime/apply.ts'
import { Controller } from '../../runtime/controller.ts'
import { childSource, ownSource, referenceSource, type Source } from '../../runtime/sources.ts'
import { ReplicaScaler, type ScaledModel } from '../../scaling/replica-scaler.ts'
import { type Caches, INDEX, keysOf, namespaceOfKey, stepChildrenOf } from '../caches.ts'
import type { ControllerParts } from '../context.ts'
import type { SleepingEnsembles } from '../model/create-model-controllers.ts'
import type { PodGroups } from '../model/pod-groups.ts'
import { readEnsemble } from '../read-ensemble.ts'
import { ReplicasGuard } from '../replicas-guard.ts'
import { readTransport } from '../router/read-router.ts'
import { servedNameKey } from '../served-names.ts'
import { EnsemblePods, podsOfEnsemble } from './ensemble-pods.ts'

export interface EnsemblePodsControllersOptions extends ControllerParts {
  /** Metrics that a scrape shows beside the runtime's. */
  readonly scrapes: Metrics
  readonly podClient: PodClient
  readonly groups: PodGroups
  /** Callback for the Models in the pods of an Ensemble whose objects cannot be made as wanted, by key. */
  readonly onProblem: (modelKey: string) => void
  /** Tells whether requests wait for a model, by its served name. */
  readonly isWanted: (namespace: string, modelName: string) => boolean
  /** Milliseconds between two looks at the load of pods; see ReplicaScaler. */
  readonly scalingMs?: number
}

/** The controller of the pods of Ensembles, and the loop that decides on their replicas. */
export interface EnsemblePodsControllers {
  readonly controller: Controller
  readonly scaler: ReplicaScaler
  readonly sleeping: SleepingEnsembles
}

/**
 * Makes the controller of the pods in which Ensembles run the Models of their steps together, and the loop that scales them; neither
 * has started. Keys are those of Ensembles, `namespace/name`.
 */
export function createEnsemblePods(o: EnsemblePodsControllersOptions): EnsemblePodsControllers {
  const { caches, podClient, client, clock, log, metrics, groups } = o
  const guard = new ReplicasGuard({ client, clock })
  const name = 'ensemble-pods'
  const scaledIn = (ensembles: readonly Stored<EnsembleObject>[]): readonly ScaledModel[] =>
    ensembles
      .flatMap((ensemble) => toScaled(ensemble, { groups, caches }))
      .filter(({ key }) => !guard.isLeft(key))
  const scaler: ReplicaScaler = new ReplicaScaler({
    name: `${name}-scaling`,
    client: podClient,
    models: () => scaledIn(caches.ensembles.list()),
    isWanted: o.isWanted,
    onDecision: (key) => controller.enqueue(key),
    scalings: o.scrapes.counter({
      name: 'tutti_operator_ensemble_scalings_total',
      help: 'Changes of the number of replicas of the pods of Ensembles that the operator decided.',
      labels: ['direction'],
    }),
    clock,
    log: log.child({ controller: `${name}-scaling` }),
    ...(o.scalingMs !== undefined && { everyMs: o.scalingMs }),
  })
  const children = stepChildrenOf(caches)
  const applier = new Applier({ client, metrics, caches: children })
  const pods = new EnsemblePods({ ...o, applier, scaler, guard })
  caches.ensembles.subscribe((event) => {
    if (event.type === 'deleted') groups.forget(event.object.metadata.uid)
  })
  const controller: Controller = new Controller({
    name,
    sources: toSources(caches, children),
    reconcile: (context, key) => pods.reconcile(context, key),
    groupOf: namespaceOfKey,
    clock,
    log,
    metrics,
  })
  const sleeping: SleepingEnsembles = {
    namespaces: () => caches.ensembles.list().flatMap(namespacesWithSleepers),
    wake: (namespace, names) =>
      scaler.wake(scaledIn(caches.ensembles.inNamespace(namespace)), names),
    wakeOne: (key, uid) => scaler.wakeOne(key, uid),
  }
  return { controller, scaler, sleeping }
}

/** Returns the namespace of an Ensemble whose pods may sleep; else an empty list. */
function namespacesWithSleepers(ensemble: Stored<EnsembleObject>): readonly string[] {
  const { placement, scaling } = readEnsemble(ensemble).manifest?.spec ?? {}
  const maySleepNow = placement === 'Together' && maySleep(toScaling({ scaling }))
  return maySleepNow ? [ensemble.metadata.namespace ?? ''] : []
}

/** Builds the record of the pods of an Ensemble that the operator scales; an empty list if there are none. */
function toScaled(
  ensemble: Stored<EnsembleObject>,
  { groups, caches }: { readonly groups: PodGroups; readonly caches: Caches },
): readonly ScaledModel[] {
  const [deployment] = caches.deployments.byOwner(ensemble.metadata)
  const replicas = deployment?.spec.replicas
  const plan = replicas === undefined ? undefined : groups.plan(ensemble)
  if (replicas === undefined || plan === undefined || plan.held !== undefined) return []
  const { scaling, group } = plan
  if (scaling.provider !== 'Native') return []
  const { uid, namespace = '', name } = ensemble.metadata
  const pods = podsOfEnsemble(caches, ensemble, group)
    .filter(isReady)
    .flatMap((pod) => podAddressOf(pod) ?? [])
  const modelNames = group.models.map(({ modelName }) => modelName)
  return [{ key: `${namespace}/${name}`, namespace, uid, modelNames, scaling, replicas, pods }]
}

function toSources(caches: Caches, children: ReturnType<typeof stepChildrenOf>): readonly Source[] {
  const { ensembles, models, deployments } = caches
  const ofModel = (key: string): readonly string[] => {
    const model = models.get(key)
    const named =
      model === undefined ? [] : keysOf(ensembles.byIndex(INDEX.step, servedNameKey(model)))
    const present = deployments.byIndex(INDEX.model, key).flatMap(ownersOf)
    return [...named, ...present]
  }
  return [
    ownSource(ensembles),
    ...children.map((cache) => childSource(cache, ENSEMBLE)),
    referenceSource({ cache: models, toKeys: ({ metadata }) => ofModel(toKeyString(metadata)) }),
    referenceSource({
      cache: deployments,
      toKeys: ({ metadata: { namespace }, models: names }) =>
        names.flatMap((name) => ofModel(`${namespace}/${name}`)),
    }),
    referenceSource({
      cache: caches.secrets,
      toKeys: ({ metadata }) =>
        keysOf(models.byIndex(INDEX.secret, toKeyString(metadata))).flatMap(ofModel),
    }),
    referenceSource({
      cache: caches.routers,
      toKeys: ({ metadata }) => keysOf(ensembles.inNamespace(metadata.namespace)),
      predicate: (now, before) => readTransport(now) !== readTransport(before),
      priority: 'low',
    }),
  ]
}

/** Returns the keys of the Ensembles that own an object. */
function ownersOf({ metadata }: KubeObject): readonly string[] {
  return (metadata.ownerReferences ?? [])
    .filter(({ kind }) => kind === ENSEMBLE.kind)
    .map(({ name }) => `${metadata.namespace}/${name}`)
}
