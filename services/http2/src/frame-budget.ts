import { ConnectionError, ErrorCode } from './error-code.ts'
import { TokenBucket } from './token-bucket.ts'

/** Streams that a client resets, or has us reset or refuse: so many at once, and so many more each second. */
export interface ResetBounds {
  readonly resetBurst: number
  readonly resetsPerSecond: number
}

/** Frames that bring nothing: pings, settings, empty DATA and the like. */
const USELESS = { burst: 10_000, perSecond: 1000 }
/** So many of them for each frame that brings something. */
const EARNED = 8

/** Bounds what a client may have us do for nothing. */
export class FrameBudget {
  readonly #resets: TokenBucket
  readonly #useless: TokenBucket

  /** @param now - in milliseconds. */
  constructor({ resetBurst, resetsPerSecond }: ResetBounds, now: () => number) {
    this.#resets = new TokenBucket({ burst: resetBurst, perSecond: resetsPerSecond }, now)
    this.#useless = new TokenBucket(USELESS, now)
  }

  /** A frame has brought something, or was one that a client wanted. */
  earn(): void {
    this.#useless.give(EARNED)
  }

  /** @throws ConnectionError ENHANCE_YOUR_CALM */
  countReset(): void {
    if (this.#resets.take()) return
    throw new ConnectionError(ErrorCode.enhanceYourCalm, 'too many streams are given up')
  }

  /** @throws ConnectionError ENHANCE_YOUR_CALM */
  countUseless(): void {
    if (this.#useless.take()) return
    throw new ConnectionError(ErrorCode.enhanceYourCalm, 'too many frames bring nothing')
  }
}
