import { COMPONENT } from '@tutti/api'
import { type Secret, type Stored, toKeyString } from '@tutti/kube'
import type { EnsembleObject, ModelObject } from '../../api/kinds.ts'
import type { PodState } from '../../pods/pod-state.ts'
import { isOrphanOf, type Revision } from '../accepted-revisions.ts'
import { type Caches, INDEX, rivalOf, secretKeysOf } from '../caches.ts'
import type { DeploymentRecord } from '../kept-objects.ts'
import { stepKeysOf } from '../read-ensemble.ts'
import { type Served, servedNameKey } from '../served-names.ts'

type Model = Stored<ModelObject>
export type ModelReader = ReturnType<typeof createModelReader>

/** Makes the functions with which a reconcile reads a Model and its objects from caches. */
export function createModelReader(caches: Caches) {
  return {
    model: (key: string): Model | undefined => caches.models.get(key),
    /** Finds another resource that holds the Model's served name; undefined if the Model holds it. */
    rivalOf: (model: Model): Served | undefined => rivalOf(caches, model),
    /** Returns the Secret with which the Model's artifacts are fetched. */
    secretOf: (model: Model): Stored<Secret> | undefined =>
      caches.secrets.get(secretKeysOf(model)[0] ?? ''),
    /** Lists the Models whose spec asks for the pods of this one. */
    guestsOf: (host: Model): readonly Model[] =>
      caches.models.byIndex(INDEX.host, toKeyString(host.metadata)),
    /** Lists the Ensembles whose steps name a Model by its served name. */
    ensemblesOf: (model: Model): readonly Stored<EnsembleObject>[] =>
      caches.ensembles.byIndex(INDEX.step, servedNameKey(model)),
    /** Lists the Models that the steps of an Ensemble name, by name. */
    modelsOf: (ensemble: Stored<EnsembleObject>): readonly Model[] =>
      modelsOfSteps(caches, ensemble),
    /** Returns the Deployment that a Model or an Ensemble owns. */
    deploymentOf: ({ metadata }: Served): Stored<DeploymentRecord> | undefined =>
      caches.deployments.byOwner(metadata)[0],
    podsOf: ({ metadata }: Model): readonly Stored<PodState>[] =>
      caches.pods
        .byIndex(INDEX.model, `${metadata.namespace}/${metadata.name}`)
        .filter((pod) => pod.metadata.labels?.[COMPONENT] === 'step'),
    /** Returns the ControllerRevisions that the Model owns. */
    revisionsOf: (model: Model): readonly Revision[] => caches.revisions.byOwner(model.metadata),
    /** Returns the ControllerRevisions that an earlier Model of this name left behind. */
    orphansOf: (model: Model): readonly Revision[] =>
      caches.revisions
        .inNamespace(model.metadata.namespace)
        .filter((revision) => isOrphanOf(revision, 'model', model.metadata.name)),
  }
}

/** Lists the Models that hold the served names which the steps of an Ensemble may call, by name. */
function modelsOfSteps(caches: Caches, ensemble: Stored<EnsembleObject>): readonly Model[] {
  const models = stepKeysOf(ensemble).flatMap((key) =>
    caches.models
      .byIndex(INDEX.servedName, key)
      .filter((one) => rivalOf(caches, one) === undefined),
  )
  return models.toSorted((one, other) => (one.metadata.name < other.metadata.name ? -1 : 1))
}
