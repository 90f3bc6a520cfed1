import { isOfRouter } from '@tutti/api'
import { type KubeObject, type Stored, toKeyString } from '@tutti/kube'
import { type EnsembleObject, MODEL, type ModelObject, type RouterObject } from '../../api/kinds.ts'
import { isReady } from '../../pods/pod-state.ts'
import type { Cache } from '../../runtime/cache.ts'
import { findCondition } from '../../runtime/conditions.ts'
import { Controller, type ReconcileContext, type Result } from '../../runtime/controller.ts'
import { untilOwnerMoves } from '../../runtime/owner-check.ts'
import {
  childSource,
  isAnyChange,
  isIntentChange,
  ownSource,
  referenceSource,
  type Source,
  type SourceCache,
} from '../../runtime/sources.ts'
import { type Caches, hostKeysOf, INDEX, keysOf, modelKeysOf, namespaceOfKey } from '../caches.ts'
import type { ControllerParts } from '../context.ts'
import { stepKeysOf } from '../read-ensemble.ts'
import { readTransport } from '../router/read-router.ts'
import { hasOtherTrouble } from '../router/router-trouble.ts'
import { servedNameKey } from '../served-names.ts'
import { ModelPass, type ModelPassOptions } from './model-pass.ts'

/** Makes the controller of Models. Its keys are `namespace/name`. @param timeoutMs - longest time for one reconcile. */
export function createModelController(
  o: ModelPassOptions & Pick<ControllerParts, 'log' | 'metrics'>,
  children: readonly SourceCache<KubeObject>[],
  timeoutMs: number | undefined,
): Controller {
  const { clock, log, metrics, caches, observer } = o
  caches.pods.subscribe((event) => {
    if (event.type === 'deleted') observer.forget(event.object.metadata.uid)
  })
  return new Controller({
    name: 'model',
    sources: toSources(caches, children),
    reconcile: (context, key) => reconcile(o, context, key),
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
    for (const one of [o.applier, o.statuses, o.scaler, o.guard]) one.forget(key)
    return {}
  }
  // Its children go with it, by their owner references.
  if (model.metadata.deletionTimestamp !== undefined) return {}
  return await untilOwnerMoves(() => new ModelPass(o, { model, key, signal, withoutSlot }).run())
}

/** Returns true if a change of the Router changes the settings of steps, or a condition that Models copy from its status. */
function isModelsBusiness(now: RouterObject, before: RouterObject): boolean {
  return hasOtherTrouble(now, before) || readTransport(now) !== readTransport(before)
}

/** Returns true if users have edited a Model, or if it is refused since, or no longer: what is in the same pods says so. */
function hasOtherIntentOrRefusal(now: Stored<ModelObject>, before: Stored<ModelObject>): boolean {
  return isIntentChange(now, before) || acceptedOf(now) !== acceptedOf(before)
}

function acceptedOf({ status }: ModelObject): string | undefined {
  return findCondition(status?.conditions, 'Accepted')?.status
}

/** Lists the keys of other Models whose pods a Model concerns: its host, its guests, and those that share pods with it now. */
function togetherWith({ models, deployments }: Caches, key: string): readonly string[] {
  const namespace = namespaceOfKey(key)
  const model = models.get(key)
  const hosts = model === undefined ? [] : hostKeysOf(model)
  const guests = [key, ...hosts].flatMap((host) => keysOf(models.byIndex(INDEX.host, host)))
  const present = deployments
    .byIndex(INDEX.model, key)
    .flatMap((one) => one.models.map((name) => `${namespace}/${name}`))
  const all = new Set([...hosts, ...guests, ...present])
  all.delete(key)
  return [...all]
}

function toSources(
  caches: Caches,
  children: readonly SourceCache<KubeObject>[],
): readonly Source[] {
  const { models, pods } = caches
  const sameName = <T extends ModelObject | EnsembleObject>(cache: Cache<T>): Source =>
    referenceSource({
      cache,
      predicate: isIntentChange,
      toKeys: (object) => keysOf(models.byIndex(INDEX.servedName, servedNameKey(object))),
    })
  const together = (key: string): readonly string[] => togetherWith(caches, key)
  return [
    ownSource(models),
    referenceSource({
      cache: models,
      toKeys: ({ metadata }) => together(toKeyString(metadata)),
      predicate: hasOtherIntentOrRefusal,
    }),
    ...[...children, caches.revisions].map((cache) => childSource(cache, MODEL)),
    referenceSource({
      cache: caches.deployments,
      toKeys: ({ metadata: { namespace }, models: names }) =>
        names.flatMap((name) => {
          const key = `${namespace}/${name}`
          return [key, ...together(key)]
        }),
    }),
    // An Ensemble may take the Models of its steps together.
    referenceSource({
      cache: caches.ensembles,
      predicate: isIntentChange,
      toKeys: (ensemble) =>
        stepKeysOf(ensemble).flatMap((key) => keysOf(models.byIndex(INDEX.servedName, key))),
    }),
    referenceSource({ cache: pods, toKeys: modelKeysOf, predicate: isAnyChange }),
    // A router that comes or goes is every Model's business.
    referenceSource({
      cache: pods,
      toKeys: (pod) => (isOfRouter(pod) ? keysOf(models.inNamespace(pod.metadata.namespace)) : []),
      predicate: (now, before) => isReady(now) !== isReady(before),
      priority: 'low',
    }),
    referenceSource({
      cache: caches.routers,
      toKeys: (router) => keysOf(models.inNamespace(router.metadata.namespace)),
      predicate: isModelsBusiness,
      priority: 'low',
    }),
    referenceSource({
      cache: caches.secrets,
      toKeys: ({ metadata }) =>
        keysOf(models.byIndex(INDEX.secret, toKeyString(metadata))).flatMap((key) => [
          key,
          ...together(key),
        ]),
    }),
    sameName(models),
    sameName(caches.ensembles),
  ]
}
