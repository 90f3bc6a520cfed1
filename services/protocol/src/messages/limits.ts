/** Version of the member messages, chunks and heartbeats that this code speaks. */
export const MESSAGE_PROTOCOL_VERSION = 1

/**
 * Most bytes of a tensor inside a message; a larger tensor becomes a transfer. Sending 64 KB inline costs less than the round
 * trip that begins a transfer. It delays later messages on the control connection by well under a millisecond.
 */
export const INLINE_LIMIT_BYTES = 64 * 1024

/**
 * Most bytes of all inline tensors of one message, without padding. Even with the longest header the message fits nats-server's
 * default max_payload of 1 MiB.
 */
export const INLINE_TOTAL_LIMIT_BYTES = 256 * 1024

/**
 * Most bytes of a message's header: names, shapes and parameters. The largest allowed parameters of a request fit, with their
 * names.
 */
export const HEADER_LIMIT_BYTES = 640 * 1024

/** Most models that may have called one another up to a request. The router's `--max-bls-depth` allows fewer. */
export const CALLERS_LIMIT = 64

/** Most calls that one offer reports as done. */
export const DONE_LIMIT = 16

/** Most bytes of a member's id. Its length takes one byte in chunks, and the name of a Kubernetes pod has at most 253 bytes. */
export const MEMBER_ID_LIMIT_BYTES = 255

/** Bytes of a tensor in one chunk. Larger chunks are no faster (dataplane.md, section 3) and hold the connection longer. */
export const CHUNK_BYTES = 512 * 1024

/**
 * Most bytes of a transfer that goes as one chunk. With the chunk's header it fits nats-server's default max_payload of 1 MiB.
 */
export const WHOLE_CHUNK_BYTES = 1024 * 1024 - 1024

/** Bytes that one sender may have under way to one receiver. 4 MiB are enough for full throughput; more only delays others. */
export const SENDER_CREDIT_BYTES = 4 * 1024 * 1024

/**
 * Bytes that all senders together may have under way to one receiver: a quarter of nats-server's default max_pending, beyond
 * which it drops clients.
 */
export const RECEIVER_CREDIT_BYTES = 16 * 1024 * 1024

/** Most bytes of a heartbeat, enough for some thousand revisions. It is sent four times a second to every member. */
export const HEARTBEAT_LIMIT_BYTES = 512 * 1024

/** Most revisions in one heartbeat; see HEARTBEAT_LIMIT_BYTES. */
export const HEARTBEAT_REVISIONS = 4096

/** Alignment in bytes: inline tensors and payloads of chunks begin at multiples of it, from the message's start. */
export const ALIGNMENT_BYTES = 8
