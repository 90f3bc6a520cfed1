import type { V1DeploymentSpec, V1DeploymentStatus } from '@kubernetes/client-node'
import type { JsonObject, KubeObject } from '../object.ts'
import { defineResource } from '../resource.ts'
import type { PodTemplateSpec } from './pod.ts'
import type { Wire } from './wire.ts'

export interface Deployment extends KubeObject {
  readonly spec: Omit<Wire<V1DeploymentSpec>, 'template'> & { readonly template: PodTemplateSpec }
  readonly status?: Wire<V1DeploymentStatus>
}

export const DEPLOYMENT = defineResource<Deployment>('apps/v1', 'deployments', 'Deployment')

/** A former state of an object, as immutable data. */
export interface ControllerRevision extends KubeObject {
  readonly data?: JsonObject
  readonly revision: number
}

export const CONTROLLER_REVISION = defineResource<ControllerRevision>(
  'apps/v1',
  'controllerrevisions',
  'ControllerRevision',
)
