import { ConnectionError, ErrorCode } from './error-code.ts'
import { TokenBucket } from './token-bucket.ts'

/** Bounds on the streams that a client resets or makes us reset or refuse: `resetBurst` at once, then `resetsPerSecond`. */
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

/** Bounds the work that a client may cause without requests or bodies, such as resets, pings and settings. */
export class FrameBudget {
  readonly #resets: TokenBucket
  readonly #useless: TokenBucket

  /** @param now - in milliseconds. */
  constructor({ resetBurst, resetsPerSecond }: ResetBounds, now: () => number) {
    this.#resets = new TokenBucket({ burst: resetBurst, perSecond: resetsPerSecond }, now)
    this.#useless = new TokenBucket(USELESS, now)
  }

  /** Adds to the budget for a request that has come, or for a part of an answer that has gone. */
  earn(): void {
    this.#useless.give(EARNED)
  }

  /** Adds to the budget for bytes of a body that have come or gone. */
  earnBytes(bytes: number): void {
    this.#useless.give(bytes / BYTES_PER_FRAME)
  }

  /** Counts a stream that was reset or refused. @throws ConnectionError ENHANCE_YOUR_CALM if there are too many. */
  countReset(): void {
    if (this.#resets.take()) return
    throw new ConnectionError(ErrorCode.enhanceYourCalm, 'too many streams are given up')
  }

  /** Counts a frame that brings nothing. @throws ConnectionError ENHANCE_YOUR_CALM if there are too many. */
  countUseless(): void {
    this.#count(1)
  }

  /**
   * Counts a setting that moves the windows of `streams` streams.
   *
   * @throws ConnectionError ENHANCE_YOUR_CALM if there are too many.
   */
  countMoved(streams: number): void {
    this.#count(streams / STREAMS_PER_FRAME)
  }

  #count(frames: number): void {
    if (this.#useless.take(frames)) return
    throw new ConnectionError(ErrorCode.enhanceYourCalm, 'too many frames bring nothing')
  }
}
