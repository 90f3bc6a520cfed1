import { isOfRouter } from '@tutti/api'
import { type KubeObject, type Stored, toKeyString } from '@tutti/kube'
import { ENSEMBLE } from '../../api/kinds.ts'
import { Controller } from '../../runtime/controller.ts'
import { childSource, ownSource, referenceSource, type Source } from '../../runtime/sources.ts'
import { StatusWriter } from '../../runtime/status.ts'
import { acceptedOf } from '../accepted-revisions.ts'
import { type Caches, INDEX, keysOf, namespaceOfKey } from '../caches.ts'
import type { ControllerParts } from '../context.ts'
import { hasOtherBuiltins } from '../router/builtins-told.ts'
import { hasOtherTrouble } from '../router/router-trouble.ts'
import { type Served, servedNameKey } from '../served-names.ts'
import { EnsembleReconciler, type EnsembleReconcilerOptions } from './ensemble-reconciler.ts'
import { Exposure } from './exposure.ts'

/** Makes the controller of Ensembles, which checks them and stores accepted ones for routers. Its keys are `namespace/name`. */
export function createEnsembleController(
  o: ControllerParts & Pick<EnsembleReconcilerOptions, 'groups'>,
): Controller {
  const { clock, log, metrics, caches } = o
  const exposure = new Exposure(o)
  const statuses = new StatusWriter(o)
  const reconciler = new EnsembleReconciler({ ...o, exposure, statuses })
  const controller = new Controller({
    name: 'ensemble',
    sources: createSources(caches),
    reconcile: (context, key) => reconciler.reconcile(context, key),
    groupOf: namespaceOfKey,
    clock,
    log,
    metrics,
  })
  caches.httpRoutes.onServed(() => {
    for (const key of caches.ensembles.keys()) controller.enqueue(key, 'low')
  })
  return controller
}

function createSources(caches: Caches): readonly Source[] {
  const { ensembles } = caches
  const ofNamespace = ({ metadata }: Stored<KubeObject>): readonly string[] =>
    keysOf(ensembles.inNamespace(metadata.namespace))
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
    referenceSource({ cache: caches.models, toKeys: concernedBy, ...low }),
    referenceSource({
      cache: ensembles,
      toKeys: (ensemble) =>
        concernedBy(ensemble).filter((key) => key !== toKeyString(ensemble.metadata)),
      ...low,
    }),
    referenceSource({
      cache: caches.revisions,
      toKeys: (revision) => {
        const accepted = acceptedOf(revision)
        if (accepted === undefined) return []
        return concerned(`${revision.metadata.namespace}/${accepted.modelName}`)
      },
      ...low,
    }),
    referenceSource({
      cache: caches.routers,
      toKeys: ofNamespace,
      predicate: (now, before) => hasOtherTrouble(now, before) || hasOtherBuiltins(now, before),
      ...low,
    }),
    referenceSource({
      cache: caches.pods,
      toKeys: (pod) => (isOfRouter(pod) ? ofNamespace(pod) : []),
      ...low,
    }),
    referenceSource({
      cache: caches.secrets,
      toKeys: ({ metadata }) =>
        [INDEX.token, INDEX.tls].flatMap((index) =>
          keysOf(ensembles.byIndex(index, toKeyString(metadata))),
        ),
    }),
    childSource(caches.ingresses, ENSEMBLE),
    childSource(caches.httpRoutes, ENSEMBLE),
  ]
}
