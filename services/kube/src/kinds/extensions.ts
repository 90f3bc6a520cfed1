import type { JsonObject, KubeObject } from '../object.ts'
import type { Resource } from '../resource.ts'

export interface CustomResourceDefinition extends KubeObject {
  readonly spec: {
    readonly group: string
    readonly scope: 'Namespaced' | 'Cluster'
    readonly names: {
      readonly plural: string
      readonly singular?: string
      readonly kind: string
      readonly shortNames?: readonly string[]
      readonly categories?: readonly string[]
    }
    readonly versions: readonly {
      readonly name: string
      readonly served: boolean
      readonly storage: boolean
      readonly schema?: { readonly openAPIV3Schema?: JsonObject }
      readonly subresources?: JsonObject
      readonly additionalPrinterColumns?: readonly JsonObject[]
      readonly selectableFields?: readonly { readonly jsonPath: string }[]
    }[]
  }
  readonly status?: {
    readonly conditions?: readonly {
      readonly type: string
      readonly status: 'True' | 'False' | 'Unknown'
      readonly reason?: string
      readonly message?: string
    }[]
  }
}

export const CUSTOM_RESOURCE_DEFINITION: Resource<CustomResourceDefinition> = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  plural: 'customresourcedefinitions',
  kind: 'CustomResourceDefinition',
  namespaced: false,
}
