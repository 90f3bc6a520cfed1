import type { Clock } from '@tutti/chassis'
import type { Heartbeat, Subjects } from '@tutti/protocol'
import type { DirectLinks } from '../direct/direct-links.ts'
import type { EndpointSettings } from '../endpoint-settings.ts'
import type { IgnoredMessages } from '../ignored-messages.ts'
import type { TransportEvents } from '../log-events.ts'
import type { BrokerLink } from '../nats/broker-link.ts'
import type { IncomingTransfers } from '../transfers/incoming-transfers.ts'
import type { OutgoingTransfers } from '../transfers/outgoing-transfers.ts'

/** The parts of a member that its other parts use. */
export interface MemberContext {
  readonly self: string
  readonly role: Heartbeat['role']
  readonly subjects: Subjects
  readonly link: BrokerLink
  readonly direct: DirectLinks | undefined
  readonly incomingTransfers: IncomingTransfers
  readonly outgoingTransfers: OutgoingTransfers
  readonly clock: Clock
  readonly settings: EndpointSettings
  readonly events: TransportEvents
  readonly ignored: IgnoredMessages
}
