import type { KubeObject } from '../object.ts'
import { defineResource } from '../resource.ts'

/** Times have six digits after the second (`toMicroTime`). */
export interface Lease extends KubeObject {
  readonly spec?: {
    readonly holderIdentity?: string
    readonly leaseDurationSeconds?: number
    readonly acquireTime?: string
    readonly renewTime?: string
    readonly leaseTransitions?: number
  }
}

export const LEASE = defineResource<Lease>('coordination.k8s.io/v1', 'leases', 'Lease')

export interface ObjectReference {
  readonly apiVersion?: string | undefined
  readonly kind?: string | undefined
  readonly namespace?: string | undefined
  readonly name?: string | undefined
  readonly uid?: string | undefined
  readonly resourceVersion?: string | undefined
  /** `spec.containers{NAME}`, say. */
  readonly fieldPath?: string | undefined
}

/** events.k8s.io/v1; `eventTime` has six digits after the second (`toMicroTime`). */
export interface Event extends KubeObject {
  readonly eventTime: string
  readonly reportingController: string
  readonly reportingInstance: string
  readonly action: string
  readonly reason: string
  readonly type: 'Normal' | 'Warning'
  /** At most 1024 bytes. */
  readonly note?: string
  readonly regarding?: ObjectReference
  readonly series?: { readonly count: number; readonly lastObservedTime: string }
}

export const EVENT = defineResource<Event>('events.k8s.io/v1', 'events', 'Event')

/** @returns RFC 3339 with six digits after the second, the only form in which the server takes a MicroTime. */
export function toMicroTime(epochMs: number): string {
  return new Date(epochMs).toISOString().replace('Z', '000Z')
}
