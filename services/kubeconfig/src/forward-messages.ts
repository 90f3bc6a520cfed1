/** The channels of a port that Kubernetes forwards. */
const DATA = 0
const ERROR = 1
/** Bytes with which each channel begins: the number of the port. */
const PORT_BYTES = 2

/** Converts bytes to messages for a pod, on the channel for data. */
export async function* toMessages(pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  for await (const piece of pieces) yield Buffer.concat([Buffer.of(DATA), piece])
}

/** Converts messages from a pod to its bytes. @throws Error with the text of Kubernetes if it reports an error. */
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
