import type { Deployment, Pod, Secret, Stored } from '@tutti/kube'
import type { ModelObject } from '../../api/kinds.ts'
import { COMPONENT } from '../../resources/step-labels.ts'
import { isOrphanOf, type Revision } from '../accepted-revisions.ts'
import { type Caches, INDEX, inNamespaceOf, rivalOf } from '../caches.ts'
import type { Served } from '../served-names.ts'

/** What a reconcile reads, from caches. */
export interface ModelReader {
  model(key: string): Stored<ModelObject> | undefined
  /** Who has the Model's served name, if it is another. */
  rivalOf(model: Stored<ModelObject>): Served | undefined
  secret(namespace: string, name: string): Stored<Secret> | undefined
  deploymentOf(model: Stored<ModelObject>): Stored<Deployment> | undefined
  podsOf(model: Stored<ModelObject>): readonly Stored<Pod>[]
  /** Those that the Model owns. */
  revisionsOf(model: Stored<ModelObject>): readonly Revision[]
  /** Those that an earlier Model of that name left behind. */
  orphansOf(model: Stored<ModelObject>): readonly Revision[]
}

/** Reads the caches. */
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
