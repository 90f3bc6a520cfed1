import { isOfBuiltins, isOfRouter } from '@tutti/api'
import { type KubeObject, type Stored, toFailureText, toKeyString } from '@tutti/kube'
import { ROUTER } from '../../api/kinds.ts'
import { NATS_SECRETS } from '../../nats/tenancy-secrets.ts'
import { isReady, type PodState } from '../../pods/pod-state.ts'
import { ROUTER_IDENTITY } from '../../resources/router-names.ts'
import { BUILTINS_IDENTITY } from '../../resources/step-labels.ts'
import { Applier } from '../../runtime/apply.ts'
import { Controller, type ControllerOptions } from '../../runtime/controller.ts'
import { childSource, ownSource, referenceSource, type Source } from '../../runtime/sources.ts'
import { StatusWriter } from '../../runtime/status.ts'
import { type Caches, INDEX } from '../caches.ts'
import { runsBuiltins } from './builtins-need.ts'
import { failureOfRouter } from './router-pods.ts'
import { type RouterControllerOptions, RouterReconciler } from './router-reconciler.ts'
import { routerKeysOf } from './router-trouble.ts'

/**
 * Makes the controller of Routers. It creates a Router in each namespace that has Models or Ensembles, and gives every Router its
 * pods and its credential for NATS. Its keys are `namespace/default`.
 */
export function createRouterController(o: RouterControllerOptions): Controller {
  const { client, metrics, clock, log, caches } = o
  const { models, ensembles } = caches
  const children = childrenOf(caches)
  const applier = new Applier({ client, metrics, caches: children, adopts: isOfARouter })
  const statuses = new StatusWriter(o)
  const reconciler = new RouterReconciler({ ...o, applier, statuses })
  const sources = [
    ownSource(caches.routers),
    // The status of a Model or an Ensemble does not concern a router.
    referenceSource({ cache: models, toKeys: routerKeysOf, predicate: isOtherGeneration }),
    referenceSource({ cache: ensembles, toKeys: routerKeysOf, predicate: isOtherGeneration }),
    // A revision that is accepted may need pods with built-ins, or its predecessor may.
    referenceSource({
      cache: caches.revisions,
      toKeys: (revision) => (runsBuiltins(revision) ? routerKeysOf(revision) : []),
    }),
    secretSource(caches),
    podSource(caches),
    ...children.map((cache) => childSource(cache, ROUTER)),
  ]
  const reconcile: ControllerOptions['reconcile'] = (context, key) =>
    reconciler.reconcile(context, key)
  return new Controller({ name: 'router', sources, reconcile, clock, log, metrics })
}

function childrenOf(caches: Caches) {
  const { serviceAccounts, roles, roleBindings, edges } = caches
  const { networkPolicies, services, budgets, deployments, autoscalers } = caches
  const access = [serviceAccounts, roles, roleBindings, edges]
  return [...access, networkPolicies, services, budgets, deployments, autoscalers]
}

/** Objects of a Router that was deleted serve on under the next. */
function isOfARouter({
  metadata: { labels = {}, ownerReferences = [] },
}: Stored<KubeObject>): boolean {
  const controller = ownerReferences.find((owner) => owner.controller === true)
  const isLabelled = [ROUTER_IDENTITY, BUILTINS_IDENTITY].some((identity) =>
    Object.entries(identity).every(([key, value]) => labels[key] === value),
  )
  return isLabelled && (controller === undefined || controller.kind === ROUTER.kind)
}

/** Tokens of Ensembles, and credentials: one that somebody changes or deletes is missed by the next pod, and cannot wait for its renewal. */
function secretSource({ secrets, ensembles }: Caches): Source {
  return referenceSource({
    cache: secrets,
    toKeys: (secret) => {
      const { metadata } = secret
      const isCredential = metadata.name === NATS_SECRETS.credentials
      const isToken = ensembles.byIndex(INDEX.token, toKeyString(metadata)).length > 0
      return isCredential || isToken ? routerKeysOf(secret) : []
    },
  })
}

/** Pods of routers, or with built-ins, that come, go, or become something else. */
function podSource({ pods }: Caches): Source {
  return referenceSource({
    cache: pods,
    toKeys: (pod) => (isOfRouter(pod) || isOfBuiltins(pod) ? routerKeysOf(pod) : []),
    predicate: (now, before) => stateOf(now) !== stateOf(before),
  })
}

function stateOf(pod: PodState): string {
  const failure = failureOfRouter(pod)
  const { deletionTimestamp = '' } = pod.metadata
  const text = failure === undefined ? '' : `${failure.reason} ${toFailureText(failure)}`
  return [isReady(pod), pod.status?.phase, deletionTimestamp, text].join(' ')
}

function isOtherGeneration(now: Stored<KubeObject>, before: Stored<KubeObject>): boolean {
  return (
    now.metadata.generation !== before.metadata.generation ||
    now.metadata.deletionTimestamp !== before.metadata.deletionTimestamp ||
    now.metadata.uid !== before.metadata.uid
  )
}
