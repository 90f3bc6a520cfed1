/** Version of the member messages, chunks and heartbeats that this code speaks. */
export const MESSAGE_PROTOCOL_VERSION = 1

/**
 * Bytes of a tensor that ride inside a message; a larger one becomes a transfer. One hop of 64 KB inline costs less than the
 * round trip that a transfer asks for first, and delays what is behind it on the control connection by well under a millisecond.
 */
export const INLINE_LIMIT_BYTES = 64 * 1024

/**
 * Bytes of all inline tensors of one message, padding not counted. With a header at its bound the message still passes a
 * nats-server's default max_payload of 1 MiB.
 */
export const INLINE_TOTAL_LIMIT_BYTES = 256 * 1024

/** Bytes of a message's header: names, shapes and parameters. What the parameters of a request may say fits here, with their names. */
export const HEADER_LIMIT_BYTES = 640 * 1024

/** Models that may have called one another up to a request. What is allowed is less; see the router's `--max-bls-depth`. */
export const CALLERS_LIMIT = 64

/** Calls that one offer says to be done. */
export const DONE_LIMIT = 16

/** Bytes of a member's id: it has a one-byte length in chunks, and a Kubernetes pod's name has at most 253. */
export const MEMBER_ID_LIMIT_BYTES = 255

/** Bytes of a tensor in one chunk: larger chunks are no faster (dataplane.md, section 3) and hold the connection longer. */
export const CHUNK_BYTES = 512 * 1024

/** Bytes of a transfer that goes as one chunk: what fits nats-server's default max_payload of 1 MiB with the chunk's header. */
export const WHOLE_CHUNK_BYTES = 1024 * 1024 - 1024

/** Bytes that one sender may have under way to one receiver: 4 MB carry all the throughput, more only delays others. */
export const SENDER_CREDIT_BYTES = 4 * 1024 * 1024

/** Bytes under way to one receiver from all senders: a quarter of nats-server's default max_pending, where it drops clients. */
export const RECEIVER_CREDIT_BYTES = 16 * 1024 * 1024

/** Bytes of a heartbeat: some thousand revisions; it is sent four times a second to every member. */
export const HEARTBEAT_LIMIT_BYTES = 512 * 1024

/** Revisions in one heartbeat; see HEARTBEAT_LIMIT_BYTES. */
export const HEARTBEAT_REVISIONS = 4096

/** Inline tensors, and payloads of chunks, begin at multiples of this many bytes from the message's start. */
export const ALIGNMENT_BYTES = 8
