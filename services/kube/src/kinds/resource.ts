import { defineResource } from '../resource.ts'

const VERSION = 'resource.k8s.io/v1'

/** Claims of devices (dynamic resource allocation), which a cluster before Kubernetes 1.34 does not have in this version. */
export const RESOURCE_CLAIM = defineResource(VERSION, 'resourceclaims', 'ResourceClaim')

export const RESOURCE_CLAIM_TEMPLATE = defineResource(
  VERSION,
  'resourceclaimtemplates',
  'ResourceClaimTemplate',
)
