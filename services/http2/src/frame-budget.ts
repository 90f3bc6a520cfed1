import { ConnectionError, ErrorCode } from './error-code.ts'
import { TokenBucket } from './token-bucket.ts'

/** Streams that a client resets, or has us reset or refuse: so many at once, and so many more each second. */
export interface ResetBounds {
  readonly resetBurst: number
  readonly resetsPerSecond: number
}

/** Frames that bring nothing: pings, settings, empty DATA and the like. */
const USELESS = { burst: 10_000, perSecond: 1000 }
/** So many of them for each request, and for each part of an answer that has gone whole. */
const EARNED = 8
/** And one for so many bytes of bodies: frames may be of one byte, so they are not what counts. */
const BYTES_PER_FRAME = 256
/** Streams whose windows are moved in the time that a frame takes which brings nothing. */
const STREAMS_PER_FRAME = 16

/** Bounds what a client may have us do for nothing. */
export class FrameBudget {
  readonly #resets: TokenBucket
  readonly #useless: TokenBucket

  /** @param now - in milliseconds. */
  constructor({ resetBurst, resetsPerSecond }: ResetBounds, now: () => number) {
    this.#resets = new TokenBucket({ burst: resetBurst, perSecond: resetsPerSecond }, now)
    this.#useless = new TokenBucket(USELESS, now)
  }

  /** A request has come, or a part of an answer has gone. */
  earn(): void {
    this.#useless.give(EARNED)
  }

  /** Bytes of a body have come or gone. */
  earnBytes(bytes: number): void {
    this.#useless.give(bytes / BYTES_PER_FRAME)
  }

  /** @throws ConnectionError ENHANCE_YOUR_CALM */
  countReset(): void {
    if (this.#resets.take()) return
    throw new ConnectionError(ErrorCode.enhanceYourCalm, 'too many streams are given up')
  }

  /** @throws ConnectionError ENHANCE_YOUR_CALM */
  countUseless(): void {
    this.#count(1)
  }

  /** Counts a setting that moves the windows of so many streams. @throws ConnectionError ENHANCE_YOUR_CALM */
  countMoved(streams: number): void {
    this.#count(streams / STREAMS_PER_FRAME)
  }

  #count(frames: number): void {
    if (this.#useless.take(frames)) return
    throw new ConnectionError(ErrorCode.enhanceYourCalm, 'too many frames bring nothing')
  }
}
