import type { Clock, Logger } from '@tutti/chassis'
import {
  type Client,
  type HttpRoute,
  type Ingress,
  type KubeObject,
  type Pod,
  type Secret,
  type Stored,
  toKeyString,
} from '@tutti/kube'
import { ENSEMBLE, type RouterObject } from '../../api/kinds.ts'
import type { RouterViews } from '../../pods/router-views.ts'
import { isOfRouter } from '../../resources/step-labels.ts'
import type { Cache } from '../../runtime/cache.ts'
import { type Controller, createController } from '../../runtime/controller.ts'
import type { EventRecorder } from '../../runtime/events.ts'
import type { RuntimeMetrics } from '../../runtime/metrics.ts'
import { childSource, ownSource, referenceSource, type Source } from '../../runtime/sources.ts'
import { StatusWriter } from '../../runtime/status.ts'
import { acceptedOf } from '../accepted-revisions.ts'
import { INDEX, keysOf, namespaceOfKey } from '../caches.ts'
import { hasOtherTrouble } from '../router/router-trouble.ts'
import { type Served, servedNameKey } from '../served-names.ts'
import { EnsembleReconciler } from './ensemble-reconciler.ts'
import { Exposure } from './exposure.ts'
import type { WorldCaches } from './namespace-view.ts'

export interface EnsembleControllerOptions extends WorldCaches {
  readonly client: Client
  /** Those of the operator's children. */
  readonly pods: Cache<Pod>
  readonly secrets: Cache<Secret>
  /** Those of the operator. */
  readonly ingresses: Cache<Ingress>
  /** Those of the operator, if the cluster has Gateway API. */
  readonly httpRoutes: Cache<HttpRoute>
  readonly routers: Cache<RouterObject>
  readonly views: Pick<RouterViews, 'look'>
  readonly events: Pick<EventRecorder, 'record'>
  readonly metrics: RuntimeMetrics
  readonly clock: Clock
  readonly log: Logger
}

/** The controller, and what concerns all Ensembles of a namespace. */
export interface EnsembleController {
  readonly controller: Controller
  /** The routers of the namespace serve something else than before. */
  routersChanged(namespace: string): void
}

/** Checks Ensembles, and has routers serve those that are accepted. Keys are `namespace/name`. */
export function createEnsembleController(o: EnsembleControllerOptions): EnsembleController {
  const exposure = new Exposure(o)
  const statuses = new StatusWriter(o)
  const reconciler = new EnsembleReconciler({ ...o, exposure, statuses })
  const controller = createController({
    name: 'ensemble',
    sources: createSources(o),
    reconcile: (context, key) => reconciler.reconcile(context, key),
    groupOf: namespaceOfKey,
    clock: o.clock,
    log: o.log,
    metrics: o.metrics,
  })
  const routersChanged = (namespace: string): void => {
    for (const key of keysOf(o.ensembles.byIndex(INDEX.namespace, namespace))) {
      controller.enqueue(key, 'low')
    }
  }
  o.httpRoutes.onServed(() => {
    for (const key of o.ensembles.keys()) controller.enqueue(key, 'low')
  })
  return { controller, routersChanged }
}

function createSources(o: EnsembleControllerOptions): readonly Source[] {
  const { ensembles } = o
  const ofNamespace = ({ metadata }: Stored<KubeObject>): readonly string[] =>
    keysOf(ensembles.byIndex(INDEX.namespace, metadata.namespace ?? ''))
  // One Model may be a step of hundreds: what users change goes before that.
  const low = { priority: 'low' } as const
  const concerned = (servedKey: string): readonly string[] => [
    ...keysOf(ensembles.byIndex(INDEX.step, servedKey)),
    ...keysOf(ensembles.byIndex(INDEX.servedName, servedKey)),
  ]
  // A step may name a resource by its own name, which is then said with the served one.
  const concernedBy = (object: Served): readonly string[] => [
    ...concerned(servedNameKey(object)),
    ...keysOf(ensembles.byIndex(INDEX.step, toKeyString(object.metadata))),
  ]
  return [
    ownSource(ensembles),
    referenceSource({
      cache: o.models,
      toKeys: concernedBy,
      ...low,
    }),
    referenceSource({
      cache: ensembles,
      toKeys: (ensemble) =>
        concernedBy(ensemble).filter((key) => key !== toKeyString(ensemble.metadata)),
      ...low,
    }),
    referenceSource({
      cache: o.revisions,
      toKeys: (revision) => {
        const accepted = acceptedOf(revision)
        if (accepted === undefined) return []
        return concerned(`${revision.metadata.namespace}/${accepted.modelName}`)
      },
      ...low,
    }),
    referenceSource({
      cache: o.routers,
      toKeys: ofNamespace,
      predicate: hasOtherTrouble,
      ...low,
    }),
    referenceSource({
      cache: o.pods,
      toKeys: (pod) => (isOfRouter(pod) ? ofNamespace(pod) : []),
      ...low,
    }),
    referenceSource({
      cache: o.secrets,
      toKeys: ({ metadata }) => keysOf(ensembles.byIndex(INDEX.token, toKeyString(metadata))),
    }),
    childSource(o.ingresses, ENSEMBLE),
    childSource(o.httpRoutes, ENSEMBLE),
  ]
}
