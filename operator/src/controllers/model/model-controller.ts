import { type KubeObject, toKeyString } from '@tutti/kube'
import { type EnsembleObject, MODEL, type ModelObject } from '../../api/kinds.ts'
import { isReady } from '../../pods/pod-state.ts'
import { COMPONENT, isOfRouter } from '../../resources/step-labels.ts'
import type { Cache } from '../../runtime/cache.ts'
import { type Controller, createController } from '../../runtime/controller.ts'
import {
  childSource,
  isAnyChange,
  isIntentChange,
  ownSource,
  referenceSource,
  type Source,
} from '../../runtime/sources.ts'
import { isOrphanOf } from '../accepted-revisions.ts'
import { type Caches, INDEX, keysOf, modelOf, rivalOf } from '../caches.ts'
import type { ControllerContext } from '../index.ts'
import { servedNameKey } from '../served-names.ts'
import type { ModelReader, ModelReconciler } from './model-reconciler.ts'
import type { PodObserver } from './pod-observer.ts'

export interface ModelControllerOptions
  extends Pick<ControllerContext, 'clock' | 'log' | 'metrics'> {
  readonly caches: Caches
  readonly reconciler: ModelReconciler
  readonly observer: PodObserver
}

/** Keys are `namespace/name` of Models. */
export function createModelController(o: ModelControllerOptions): Controller {
  const { clock, log, metrics } = o
  return createController({
    name: 'model',
    sources: toSources(o),
    reconcile: (context, key) => o.reconciler.reconcile(context, key),
    clock,
    log,
    metrics,
  })
}

function toSources({ caches, observer }: ModelControllerOptions): readonly Source[] {
  const { models, pods } = caches
  const sameName = <T extends ModelObject | EnsembleObject>(cache: Cache<T>): Source =>
    referenceSource({
      cache,
      predicate: isIntentChange,
      toKeys: (object) => keysOf(models.byIndex(INDEX.servedName, servedNameKey(object))),
    })
  pods.subscribe((event) => {
    if (event.type === 'deleted') observer.forget(event.object.metadata.uid)
  })
  return [
    ownSource(models),
    childSource(caches.deployments, MODEL),
    childSource(caches.services, MODEL),
    childSource(caches.serviceAccounts, MODEL),
    childSource(caches.budgets, MODEL),
    childSource(caches.autoscalers, MODEL),
    childSource(caches.networkPolicies, MODEL),
    childSource(caches.revisions, MODEL),
    referenceSource({ cache: pods, toKeys: modelOf, predicate: isAnyChange }),
    // A router that comes or goes is every Model's business.
    referenceSource({
      cache: pods,
      toKeys: (pod) => (isOfRouter(pod) ? keysOf(inNamespaceOf(pod, models)) : []),
      predicate: (now, before) => isReady(now) !== isReady(before),
      priority: 'low',
    }),
    referenceSource({
      cache: caches.secrets,
      toKeys: ({ metadata }) => keysOf(models.byIndex(INDEX.secret, toKeyString(metadata))),
    }),
    sameName(models),
    sameName(caches.ensembles),
  ]
}

function inNamespaceOf<T extends KubeObject>(object: KubeObject, cache: Cache<T>) {
  return cache.byIndex(INDEX.namespace, object.metadata.namespace ?? '')
}

/** What a reconcile reads, from the caches. */
export function createModelReader(caches: Caches): ModelReader {
  return {
    model: (key) => caches.models.get(key),
    rivalOf: (model) => rivalOf(caches, model),
    secret: (namespace, name) => caches.secrets.get(`${namespace}/${name}`),
    deploymentOf: (model) => caches.deployments.byOwner(model.metadata)[0],
    podsOf: ({ metadata }) =>
      caches.pods
        .byIndex(INDEX.model, `${metadata.namespace}/${metadata.name}`)
        .filter((pod) => pod.metadata.labels?.[COMPONENT] === 'step'),
    revisionsOf: (model) => caches.revisions.byOwner(model.metadata),
    orphansOf: (model) =>
      inNamespaceOf(model, caches.revisions).filter((revision) =>
        isOrphanOf(revision, 'model', model.metadata.name),
      ),
  }
}
