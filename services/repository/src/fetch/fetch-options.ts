import type { Clock } from '@tutti/chassis'
import type { FetchCredentials } from './credentials.ts'

/** What a fetch may take at most. */
export interface FetchBounds {
  /** Bytes of all files together, and of an archive as it is sent. */
  readonly maxBytes: number
  readonly maxFiles: number
  /** Attempts in a row that bring nothing new. */
  readonly attempts: number
  /** Milliseconds without a byte, after which an attempt is given up. */
  readonly stallMs: number
}

/** 64 GiB: above the models that one machine serves. 10,000 files: a model has a few, a wrong address may have millions. */
export const FETCH_BOUNDS: FetchBounds = {
  maxBytes: 64 * 2 ** 30,
  maxFiles: 10_000,
  attempts: 6,
  stallMs: 30_000,
}

/** What every part of a fetch works with. */
export interface FetchContext {
  readonly bounds: FetchBounds
  readonly credentials: FetchCredentials
  readonly clock: Clock
  readonly signal: AbortSignal
  /** Uniform in [0, 1); for the waits between attempts. */
  readonly random?: () => number
  /** An attempt failed and another follows. */
  retrying?(o: { readonly error: string; readonly delayMs: number }): void
}
