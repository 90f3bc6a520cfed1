import { API_VERSION, type EnsembleStatus, type ModelStatus, type RouterStatus } from '@tutti/api'
import { defineResource, type KubeObject } from '@tutti/kube'

/**
 * A Model as the API server returns it. Parse its spec with `ModelSpec`, because an older or newer schema may have accepted it.
 */
export interface ModelObject extends KubeObject {
  readonly spec: unknown
  /** The status that the operator itself wrote. */
  readonly status?: ModelStatus
}

export const MODEL = defineResource<ModelObject>(API_VERSION, 'models', 'Model')

/** An Ensemble as the API server returns it; see ModelObject. */
export interface EnsembleObject extends KubeObject {
  readonly spec: unknown
  readonly status?: EnsembleStatus
}

export const ENSEMBLE = defineResource<EnsembleObject>(API_VERSION, 'ensembles', 'Ensemble')

/** A Router as the API server returns it; see ModelObject. */
export interface RouterObject extends KubeObject {
  readonly spec: unknown
  readonly status?: RouterStatus
}

export const ROUTER = defineResource<RouterObject>(API_VERSION, 'routers', 'Router')
