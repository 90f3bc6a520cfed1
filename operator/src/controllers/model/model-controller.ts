import { toKeyString } from '@tutti/kube'
import { type EnsembleObject, MODEL, type ModelObject } from '../../api/kinds.ts'
import { isReady } from '../../pods/pod-state.ts'
import { isOfRouter } from '../../resources/step-labels.ts'
import type { Cache } from '../../runtime/cache.ts'
import {
  type Controller,
  createController,
  type ReconcileContext,
  type Result,
} from '../../runtime/controller.ts'
import { untilOwnerMoves } from '../../runtime/owner-check.ts'
import {
  childSource,
  isAnyChange,
  isIntentChange,
  ownSource,
  referenceSource,
  type Source,
} from '../../runtime/sources.ts'
import { type Caches, INDEX, inNamespaceOf, keysOf, modelOf, namespaceOfKey } from '../caches.ts'
import type { ControllerContext } from '../context.ts'
import { hasOtherTrouble } from '../router/router-trouble.ts'
import { servedNameKey } from '../served-names.ts'
import { ModelPass, type ModelPassOptions } from './model-pass.ts'

export interface ModelControllerOptions
  extends Pick<ControllerContext, 'clock' | 'log' | 'metrics'> {
  readonly caches: Caches
  readonly passes: ModelPassOptions
  /** For one reconcile; see ControllerOptions. */
  readonly reconcileMs?: number
}

/** Keys are `namespace/name` of Models. */
export function createModelController(o: ModelControllerOptions): Controller {
  const { clock, log, metrics, reconcileMs: timeoutMs } = o
  return createController({
    name: 'model',
    sources: toSources(o),
    reconcile: (context, key) => reconcile(o.passes, context, key),
    groupOf: namespaceOfKey,
    clock,
    log,
    metrics,
    ...(timeoutMs !== undefined && { timeoutMs }),
  })
}

async function reconcile(
  o: ModelPassOptions,
  { signal, withoutSlot }: ReconcileContext,
  key: string,
): Promise<Result> {
  const model = o.reader.model(key)
  if (model === undefined) {
    for (const one of [o.applier, o.statuses, o.scaler]) one.forget(key)
    return {}
  }
  // Its children go with it, by their owner references.
  if (model.metadata.deletionTimestamp !== undefined) return {}
  return await untilOwnerMoves(() => new ModelPass(o, { model, key, signal, withoutSlot }).run())
}

function toSources({ caches, passes }: ModelControllerOptions): readonly Source[] {
  const { models, pods } = caches
  const sameName = <T extends ModelObject | EnsembleObject>(cache: Cache<T>): Source =>
    referenceSource({
      cache,
      predicate: isIntentChange,
      toKeys: (object) => keysOf(models.byIndex(INDEX.servedName, servedNameKey(object))),
    })
  pods.subscribe((event) => {
    if (event.type === 'deleted') passes.observer.forget(event.object.metadata.uid)
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
      cache: caches.routers,
      toKeys: (router) => keysOf(inNamespaceOf(router, models)),
      predicate: hasOtherTrouble,
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
