import type { EventsV1Event, V1LeaseSpec, V1ObjectReference } from '@kubernetes/client-node'
import type { KubeObject } from '../object.ts'
import { defineResource } from '../resource.ts'
import type { Wire } from './wire.ts'

/** Times have six digits after the second (`toMicroTime`). */
export interface Lease extends KubeObject {
  readonly spec?: Wire<V1LeaseSpec>
}

export const LEASE = defineResource<Lease>('coordination.k8s.io/v1', 'leases', 'Lease')

export type ObjectReference = {
  readonly [K in keyof V1ObjectReference]?: V1ObjectReference[K] | undefined
}

/** events.k8s.io/v1; `eventTime` has six digits after the second (`toMicroTime`). */
export type Event = KubeObject &
  Omit<Wire<EventsV1Event>, keyof KubeObject | 'regarding'> & {
    readonly regarding?: ObjectReference
    readonly reason: string
    readonly type: string
    readonly action: string
  }

export const EVENT = defineResource<Event>('events.k8s.io/v1', 'events', 'Event')

/** Formats a time in RFC 3339 with six digits after the second, the only form that the server takes for a MicroTime. */
export function toMicroTime(epochMs: number): string {
  return new Date(epochMs).toISOString().replace('Z', '000Z')
}
