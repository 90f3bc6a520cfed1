import { ServeError } from '@tutti/errors'
import {
  CHUNK_BYTES,
  INLINE_LIMIT_BYTES,
  INLINE_TOTAL_LIMIT_BYTES,
  RECEIVER_CREDIT_BYTES,
  SENDER_CREDIT_BYTES,
  WHOLE_CHUNK_BYTES,
} from '@tutti/protocol'
import { RESPONSE_WINDOW } from '@tutti/tensor'

/** Every time and bound of a member on a broker. Times in milliseconds, sizes in bytes. README.md says why each has its default. */
export interface EndpointSettings {
  readonly heartbeatMs: number
  readonly suspectAfterMissed: number
  readonly deadAfterMs: number
  readonly reconnectMs: number
  readonly connectMs: number
  readonly firstConnectMs: number
  readonly controlDeadMs: number
  readonly dataDeadMs: number
  readonly graceMs: number
  readonly tickMs: number
  readonly inlineLimitBytes: number
  readonly inlineTotalBytes: number
  readonly chunkBytes: number
  readonly wholeLimitBytes: number
  readonly creditBytes: number
  readonly creditTotalBytes: number
  readonly receiveBytes: number
  readonly receiveBytesPerSender: number
  readonly maxTensorBytes: number
  readonly heldBytes: number
  readonly heldResponses: number
  readonly responseCredits: number
  readonly responseBytes: number
  readonly stallMs: number
  readonly acceptMs: number
  readonly creditWaitMs: number
  readonly receiveWaitMs: number
  readonly probeMs: number
  readonly answerHoldMs: number
  readonly tombstones: number
  readonly tombstoneMs: number
  readonly maxCalls: number
  readonly maxOpenCalls: number
  readonly maxMembers: number
  readonly maxRevisions: number
  readonly controlQueueBytes: number
  readonly flushBytes: number
  readonly directConnectMs: number
  readonly directRetryMs: number
  readonly directPending: number
  readonly askMs: number
  readonly maxAsks: number
  readonly answerBytes: number
}

const MIB = 1024 * 1024

/** The settings of a member that is given none. */
export const ENDPOINT_DEFAULTS: EndpointSettings = {
  heartbeatMs: 250,
  suspectAfterMissed: 3,
  deadAfterMs: 3000,
  reconnectMs: 100,
  connectMs: 2000,
  firstConnectMs: 5000,
  controlDeadMs: 3000,
  dataDeadMs: 10_000,
  graceMs: 1000,
  tickMs: 100,
  inlineLimitBytes: INLINE_LIMIT_BYTES,
  inlineTotalBytes: INLINE_TOTAL_LIMIT_BYTES,
  chunkBytes: CHUNK_BYTES,
  wholeLimitBytes: WHOLE_CHUNK_BYTES,
  creditBytes: SENDER_CREDIT_BYTES,
  creditTotalBytes: RECEIVER_CREDIT_BYTES,
  receiveBytes: 1024 * MIB,
  receiveBytesPerSender: 512 * MIB,
  maxTensorBytes: 512 * MIB,
  heldBytes: 1024 * MIB,
  heldResponses: 1024,
  responseCredits: RESPONSE_WINDOW.responses,
  responseBytes: RESPONSE_WINDOW.bytes,
  stallMs: 2000,
  acceptMs: 5000,
  creditWaitMs: 10_000,
  receiveWaitMs: 10_000,
  probeMs: 5000,
  answerHoldMs: 60_000,
  tombstones: 65_536,
  tombstoneMs: 60_000,
  maxCalls: 1024,
  maxOpenCalls: 8192,
  maxMembers: 1024,
  maxRevisions: 65_536,
  controlQueueBytes: 64 * MIB,
  flushBytes: 4 * MIB,
  directConnectMs: 250,
  directRetryMs: 30_000,
  directPending: 64,
  askMs: 5000,
  maxAsks: 64,
  answerBytes: 16 * MIB,
}

/**
 * Fills what is not given.
 *
 * @throws ServeError SETTING_INVALID if a value is no positive whole number, or an inline bound is over what messages carry.
 */
export function completeSettings(given: Partial<EndpointSettings> = {}): EndpointSettings {
  const settings = { ...ENDPOINT_DEFAULTS, ...given }
  for (const [name, value] of Object.entries(settings)) {
    if (!Number.isSafeInteger(value) || value <= 0) refuse(name, value, 'a whole number above 0')
  }
  if (settings.inlineLimitBytes > INLINE_LIMIT_BYTES) {
    refuse('inlineLimitBytes', settings.inlineLimitBytes, `at most ${INLINE_LIMIT_BYTES}`)
  }
  // Callers tell of smaller reads together, so a smaller window would never open again.
  if (settings.responseBytes < INLINE_LIMIT_BYTES) {
    refuse('responseBytes', settings.responseBytes, `at least ${INLINE_LIMIT_BYTES}`)
  }
  if (settings.inlineTotalBytes > INLINE_TOTAL_LIMIT_BYTES) {
    refuse('inlineTotalBytes', settings.inlineTotalBytes, `at most ${INLINE_TOTAL_LIMIT_BYTES}`)
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
