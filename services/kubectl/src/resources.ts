import { API_VERSION, type EnsembleStatus, type ModelStatus, type RouterStatus } from '@tutti/api'
import { defineResource, type KubeObject } from '@tutti/kube'

/*
 * Tutti's kinds, as they come from the cluster. The operator there may be of another release: no field is certain.
 */

export interface ScalingFields {
  readonly provider?: string
  readonly minReplicas?: number
  readonly maxReplicas?: number
  readonly metrics?: readonly { readonly type?: string }[]
  readonly behavior?: object
}

export interface ModelObject extends KubeObject {
  readonly spec?: {
    readonly modelName?: string
    readonly paused?: boolean
    readonly accelerator?: { readonly resourceName?: string; readonly claims?: readonly object[] }
    readonly scaling?: ScalingFields
  }
  readonly status?: ModelStatus
}
export const MODEL = defineResource<ModelObject>(API_VERSION, 'models', 'Model')

export interface CalleeReference {
  readonly modelRef?: { readonly name: string }
  readonly ensembleRef?: { readonly name: string }
}

export interface StepReference extends CalleeReference {
  readonly name: string
  readonly builtin?: { readonly name: string; readonly model?: string }
  readonly onError?: { readonly fallback?: CalleeReference }
}

export interface EnsembleObject extends KubeObject {
  readonly spec?: {
    readonly modelName?: string
    readonly paused?: boolean
    readonly steps?: readonly StepReference[]
    readonly expose?: {
      readonly ingress?: { readonly className?: string }
      readonly gateway?: object
    }
  }
  readonly status?: EnsembleStatus
}
export const ENSEMBLE = defineResource<EnsembleObject>(API_VERSION, 'ensembles', 'Ensemble')

export interface RouterObject extends KubeObject {
  readonly spec?: { readonly scaling?: ScalingFields }
  readonly status?: RouterStatus
}
export const ROUTER = defineResource<RouterObject>(API_VERSION, 'routers', 'Router')
