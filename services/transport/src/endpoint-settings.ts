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
  /** Milliseconds between heartbeats: a dead replica should cost few requests, and four messages a second from each member cost nothing. */
  heartbeatMs: 250,
  /**
   * Milliseconds for which a member or the broker may be silent, counted while this process runs, before it counts as gone: long before
   * any deadline, longer than any pause of a healthy process.
   */
  deadAfterMs: 3000,
  /** `deadAfterMs` of the data connection, where up to 4 MiB may stand before the broker's answer on a slow network. */
  dataDeadMs: 10_000,
  /** Milliseconds for one attempt to connect to the broker, and for a silent broker when a member closes. */
  connectMs: 2000,
  /** Milliseconds for which opening a member waits for the broker. Then it goes on without it. */
  firstConnectMs: 5000,
  /** Milliseconds for a direct connection to a step to open. Then the broker carries everything. */
  directConnectMs: 250,
  /**
   * Milliseconds that the pause between two attempts of a direct connection grows to: what keeps pods apart for long is mostly a
   * network policy, which does not end by itself.
   */
  directRetryMs: 30_000,
} as const
export type LinkSettings = Numbers<typeof LINK>

/** Sizes of pieces of tensors, and bytes of them that are under way. */
const FLOW = {
  /** Bytes of a piece of a large tensor. Larger pieces are no faster, and hold the connection longer. */
  chunkBytes: CHUNK_BYTES,
  /** Bytes up to which a tensor goes as one piece: a picture of 786 KB does, and the piece's head fits the broker's 1 MiB beside it. */
  wholeLimitBytes: WHOLE_CHUNK_BYTES,
  /** Bytes under way from one sender, and as many that it may send unasked. A measured window that carries all the throughput. */
  creditBytes: SENDER_CREDIT_BYTES,
  /** Bytes under way from all senders, an equal part each and up to half of them unasked: a quarter of the broker's `max_pending`. */
  creditTotalBytes: RECEIVER_CREDIT_BYTES,
  /** Milliseconds without a byte that was granted, before it is asked for again: many times what a loaded machine takes. */
  stallMs: 2000,
} as const
export type FlowSettings = Numbers<typeof FLOW>

/** Bounds of what one call may take, and times after which it fails. */
const CALLS = {
  /**
   * Bytes of tensors that are arriving or in use, of all senders; and as many of outputs that callers have not read, beyond which no
   * call is taken.
   */
  tensorBytes: 1024 * MIB,
  /** Bytes of `tensorBytes` for one sender, so that none takes everything; so it bounds one call and one tensor too. */
  tensorBytesPerMember: 512 * MIB,
  /** Number of responses that may be ahead of the reader: more than come in a round trip. */
  responseCredits: RESPONSE_WINDOW.responses,
  /** Bytes of outputs that may be ahead of the reader: a few pictures, and not the memory of either side. */
  responseBytes: RESPONSE_WINDOW.bytes,
  /** Number of responses of one call that may wait for a slow reader. */
  heldResponses: 1024,
  /**
   * Milliseconds without a word of the other side. Then an offer fails, and the caller asks after a call that was taken. A caller that
   * does not ask three times has forgotten the call; one that asks and takes nothing loses its answer after twelve.
   */
  silenceMs: 5000,
  /** Milliseconds for which a call waits for a credit or for memory while others have them. */
  waitMs: 10_000,
} as const

/** Numbers of what a member takes of others. */
const COUNTS = {
  /** Number of calls that a member takes at the same time; a step's models have queues of their own. */
  maxCalls: 1024,
  /** Number of questions that a member answers at the same time. */
  maxAsks: 64,
  /** Bytes of an answer, or of the argument of a question: a description of 4096 model versions has 4 KiB for each. */
  answerBytes: 16 * MIB,
  /** Number of members that are known, invented ones too. */
  maxMembers: 1024,
  /** Number of revisions that all members together announce: each costs memory, and a place in the index of replicas. */
  maxRevisions: 65_536,
} as const

/** The times and bounds of a member on a broker. Each has its reason where its default is. */
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
