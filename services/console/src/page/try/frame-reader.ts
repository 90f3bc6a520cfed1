/** One response of a stream, as `answerPageStream` of the server writes it. */
export interface StreamFrame {
  readonly json: string
  /** Bytes of the binary outputs, which follow the JSON. */
  readonly data: Uint8Array
}

const HEAD_BYTES = 8
/** Most bytes of a frame that a browser should hold. */
const MAX_FRAME_BYTES = 512 * 1024 * 1024

/** Puts the frames of a stream together from pieces of any size. */
export class StreamFrameReader {
  #waiting: Uint8Array[] = []
  #byteLength = 0

  /** Bytes that have come and are no whole frame yet. */
  get rest(): number {
    return this.#byteLength
  }

  /** Takes the next piece. @returns the frames that it completes. @throws Error for a frame of more than 512 MiB. */
  push(bytes: Uint8Array): readonly StreamFrame[] {
    this.#waiting.push(bytes)
    this.#byteLength += bytes.byteLength
    const frames: StreamFrame[] = []
    for (let head = this.#peek(); head !== undefined; head = this.#peek()) {
      const { jsonBytes, dataBytes } = head
      const all = HEAD_BYTES + jsonBytes + dataBytes
      if (all > MAX_FRAME_BYTES) throw new Error(`a response has ${all} bytes`)
      if (this.#byteLength < all) break
      const whole = this.#join()
      const json = new TextDecoder().decode(whole.subarray(HEAD_BYTES, HEAD_BYTES + jsonBytes))
      // A copy: what is kept must not keep all others.
      frames.push({ json, data: whole.slice(HEAD_BYTES + jsonBytes, all) })
      this.#waiting = [whole.subarray(all)]
      this.#byteLength -= all
    }
    return frames
  }

  #peek(): { readonly jsonBytes: number; readonly dataBytes: number } | undefined {
    if (this.#byteLength < HEAD_BYTES) return undefined
    const [first = new Uint8Array()] = this.#waiting
    const head = first.byteLength >= HEAD_BYTES ? first : this.#join()
    const view = new DataView(head.buffer, head.byteOffset, HEAD_BYTES)
    return { jsonBytes: view.getUint32(0, true), dataBytes: view.getUint32(4, true) }
  }

  #join(): Uint8Array {
    const [only] = this.#waiting
    if (this.#waiting.length === 1 && only !== undefined) return only
    const whole = new Uint8Array(this.#byteLength)
    let at = 0
    for (const part of this.#waiting) {
      whole.set(part, at)
      at += part.byteLength
    }
    this.#waiting = [whole]
    return whole
  }
}
