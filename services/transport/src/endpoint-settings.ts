import { ServeError } from '@tutti/errors'
import {
  CHUNK_BYTES,
  INLINE_LIMIT_BYTES,
  RECEIVER_CREDIT_BYTES,
  SENDER_CREDIT_BYTES,
  WHOLE_CHUNK_BYTES,
} from '@tutti/protocol'
import { RESPONSE_WINDOW } from '@tutti/tensor'

type Numbers<T> = Readonly<Record<keyof T, number>>

const MIB = 1024 * 1024

/** Times of the connections, and of the members at their other ends. */
const LINK = {
  heartbeatMs: 250,
  deadAfterMs: 3000,
  dataDeadMs: 10_000,
  connectMs: 2000,
  firstConnectMs: 5000,
  directConnectMs: 250,
  directRetryMs: 30_000,
} as const
export type LinkSettings = Numbers<typeof LINK>

/** Sizes of pieces of tensors, and bytes of them that are under way. */
const FLOW = {
  chunkBytes: CHUNK_BYTES,
  wholeLimitBytes: WHOLE_CHUNK_BYTES,
  creditBytes: SENDER_CREDIT_BYTES,
  creditTotalBytes: RECEIVER_CREDIT_BYTES,
  stallMs: 2000,
} as const
export type FlowSettings = Numbers<typeof FLOW>

/** Bounds of what one call may take, and times after which it fails. */
const CALLS = {
  tensorBytes: 1024 * MIB,
  tensorBytesPerMember: 512 * MIB,
  responseCredits: RESPONSE_WINDOW.responses,
  responseBytes: RESPONSE_WINDOW.bytes,
  heldResponses: 1024,
  silenceMs: 5000,
  waitMs: 10_000,
} as const

/** Numbers of what a member takes of others. */
const COUNTS = {
  maxCalls: 1024,
  maxAsks: 64,
  answerBytes: 16 * MIB,
  maxMembers: 1024,
  maxRevisions: 65_536,
} as const

/** The times and bounds of a member on a broker. Times in milliseconds, sizes in bytes. README.md says why each has its default. */
export type EndpointSettings = LinkSettings &
  FlowSettings &
  Numbers<typeof CALLS> &
  Numbers<typeof COUNTS>

/** The settings of a member that is given none. */
export const ENDPOINT_DEFAULTS: EndpointSettings = { ...LINK, ...FLOW, ...CALLS, ...COUNTS }

/**
 * Fills what is not given.
 *
 * @throws ServeError SETTING_INVALID if a value is no positive whole number, or the window of responses is smaller than what is told of.
 */
export function completeSettings(given: Partial<EndpointSettings> = {}): EndpointSettings {
  const settings = { ...ENDPOINT_DEFAULTS, ...given }
  for (const [name, value] of Object.entries(settings)) {
    if (!Number.isSafeInteger(value) || value <= 0) refuse(name, value, 'a whole number above 0')
  }
  // Callers tell of smaller reads together, so a smaller window would never open again.
  if (settings.responseBytes < INLINE_LIMIT_BYTES) {
    refuse('responseBytes', settings.responseBytes, `at least ${INLINE_LIMIT_BYTES}`)
  }
  return settings
}

function refuse(name: string, value: unknown, want: string): never {
  throw new ServeError(
    'SETTING_INVALID',
    `member setting ${name}: got ${String(value)}, want ${want}`,
    {
      details: { field: name },
    },
  )
}
