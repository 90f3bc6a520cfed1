import { ServeError } from '@tutti/errors'
import {
  CHUNK_BYTES,
  INLINE_LIMIT_BYTES,
  RECEIVER_CREDIT_BYTES,
  SENDER_CREDIT_BYTES,
  WHOLE_CHUNK_BYTES,
} from '@tutti/protocol'
import { RESPONSE_WINDOW } from '@tutti/tensor'

/** Times of the connections, and of the members at their other ends. */
export interface LinkSettings {
  readonly heartbeatMs: number
  readonly deadAfterMs: number
  readonly dataDeadMs: number
  readonly connectMs: number
  readonly firstConnectMs: number
  readonly directConnectMs: number
  readonly directRetryMs: number
}

/** Sizes of pieces of tensors, and bytes of them that are under way. */
export interface FlowSettings {
  readonly chunkBytes: number
  readonly wholeLimitBytes: number
  readonly creditBytes: number
  readonly creditTotalBytes: number
  readonly stallMs: number
}

/** Bounds of what one call may take, and times after which it fails. */
export interface CallSettings {
  readonly tensorBytes: number
  readonly tensorBytesPerMember: number
  readonly responseCredits: number
  readonly responseBytes: number
  readonly heldResponses: number
  readonly silenceMs: number
  readonly waitMs: number
}

/** Numbers of what a member takes of others. */
export interface CountSettings {
  readonly maxCalls: number
  readonly maxAsks: number
  readonly answerBytes: number
  readonly maxMembers: number
  readonly maxRevisions: number
}

/** The times and bounds of a member on a broker. Times in milliseconds, sizes in bytes. README.md says why each has its default. */
export interface EndpointSettings extends LinkSettings, FlowSettings, CallSettings, CountSettings {}

const MIB = 1024 * 1024

/** The settings of a member that is given none. */
export const ENDPOINT_DEFAULTS: EndpointSettings = {
  heartbeatMs: 250,
  deadAfterMs: 3000,
  dataDeadMs: 10_000,
  connectMs: 2000,
  firstConnectMs: 5000,
  directConnectMs: 250,
  directRetryMs: 30_000,
  chunkBytes: CHUNK_BYTES,
  wholeLimitBytes: WHOLE_CHUNK_BYTES,
  creditBytes: SENDER_CREDIT_BYTES,
  creditTotalBytes: RECEIVER_CREDIT_BYTES,
  stallMs: 2000,
  tensorBytes: 1024 * MIB,
  tensorBytesPerMember: 512 * MIB,
  responseCredits: RESPONSE_WINDOW.responses,
  responseBytes: RESPONSE_WINDOW.bytes,
  heldResponses: 1024,
  silenceMs: 5000,
  waitMs: 10_000,
  maxCalls: 1024,
  maxAsks: 64,
  answerBytes: 16 * MIB,
  maxMembers: 1024,
  maxRevisions: 65_536,
}

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
