/** The channels of a port that Kubernetes forwards. */
const DATA = 0
const ERROR = 1
/** With which each channel begins: the number of the port. */
const PORT_BYTES = 2

/** Bytes as messages for a pod. */
export async function* toMessages(pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  for await (const piece of pieces) yield Buffer.concat([Buffer.of(DATA), piece])
}

/** The bytes in messages from a pod. @throws Error with what Kubernetes says of the pod. */
export async function* toPieces(messages: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const unread = new Map([
    [DATA, PORT_BYTES],
    [ERROR, PORT_BYTES],
  ])
  for await (const message of messages) {
    const channel = message[0] ?? DATA
    const portBytes = Math.min(unread.get(channel) ?? 0, Math.max(0, message.byteLength - 1))
    unread.set(channel, (unread.get(channel) ?? 0) - portBytes)
    const content = message.subarray(1 + portBytes)
    if (content.byteLength === 0) continue
    if (channel === ERROR) throw new Error(content.toString('utf8').trim())
    if (channel === DATA) yield content
  }
}
