import type { EnsembleStatus, ModelStatus, RouterStatus } from '@tutti/ensemble'
import type { KubeObject, Resource } from '@tutti/kube'
import { GROUP, VERSION } from './crds.ts'

/** A Model as the API server gives it: the spec has to be parsed (`ModelSpec`), as an older or newer schema may have let it in. */
export interface ModelObject extends KubeObject {
  readonly spec: unknown
  /** What the operator itself wrote. */
  readonly status?: ModelStatus
}

export const MODEL: Resource<ModelObject> = {
  group: GROUP,
  version: VERSION,
  plural: 'models',
  kind: 'Model',
  namespaced: true,
}

/** An Ensemble as the API server gives it; see ModelObject. */
export interface EnsembleObject extends KubeObject {
  readonly spec: unknown
  readonly status?: EnsembleStatus
}

export const ENSEMBLE: Resource<EnsembleObject> = {
  group: GROUP,
  version: VERSION,
  plural: 'ensembles',
  kind: 'Ensemble',
  namespaced: true,
}

/** A Router as the API server gives it; see ModelObject. */
export interface RouterObject extends KubeObject {
  readonly spec: unknown
  readonly status?: RouterStatus
}

export const ROUTER: Resource<RouterObject> = {
  group: GROUP,
  version: VERSION,
  plural: 'routers',
  kind: 'Router',
  namespaced: true,
}
