import type { Clock, Logger, Transfer } from '@tutti/chassis'
import type { FetchCredentials } from './credentials.ts'
import type { DownloadCache } from './download-cache.ts'
import type { WorkFolder } from './work-folder.ts'

/** Limits of a fetch. */
export interface FetchBounds {
  /** Bytes of all files together, and of an archive as it is sent. */
  readonly maxBytes: number
  readonly maxFiles: number
  /** Consecutive attempts without progress, after which a fetch fails. */
  readonly attempts: number
  /** Milliseconds without a byte, after which an attempt fails. */
  readonly stallMs: number
}

/**
 * Default limits of a fetch. 64 GiB are more than the models that one machine serves. A model has a few files; a wrong address
 * may have millions.
 */
export const FETCH_BOUNDS: FetchBounds = {
  maxBytes: 64 * 2 ** 30,
  maxFiles: 10_000,
  attempts: 6,
  stallMs: 30_000,
}

/** The identity of a pod at AWS. */
export interface PodIdentity {
  readonly region: string | undefined
  /** Gives a function that gives the keys of each request, which change. */
  keys(
    context: Pick<FetchContext, 'bounds' | 'credentials' | 'signal'>,
  ): () => Promise<FetchCredentials['aws']>
}

/** The context that every part of a fetch works with. */
export interface FetchContext {
  readonly bounds: FetchBounds
  readonly credentials: FetchCredentials
  /** Identity for a bucket of S3 for which the credentials have no keys; absent: none. */
  readonly identity?: PodIdentity | undefined
  readonly clock: Clock
  readonly signal: AbortSignal
  /** Uniform in [0, 1); for the waits between attempts. */
  readonly random?: () => number
  readonly log: Pick<Logger, 'warn'>
  /** Cache that other fetches share. */
  readonly cache?: DownloadCache | undefined
  /** Transfer that shows the progress of the fetch. */
  readonly transfer?: Pick<Transfer, 'begin' | 'add'> | undefined
}

/** The options of one attempt to fetch over a protocol. */
export interface FetchOptions {
  readonly context: FetchContext
  readonly work: WorkFolder
  readonly uri: string
  /** Wanted digest: `sha256:` and hex digits. */
  readonly digest: string | undefined
  /** Paths of the files that are whole: the next attempt does not fetch them again. */
  readonly done: Set<string>
  /** ETag or listing digest of the files at the target, with which the server is asked for changes; '' to fetch in any case. */
  readonly validator: string
}

/** The files that a fetch brought to the work folder. */
export interface Fetched {
  /** The folder that holds the model's files. */
  readonly root: string
  /** Digest of the archive; absent if there was none. */
  readonly digest?: string
  /** The server's name of this state: an entity tag, or the digest of a listing; '' if there is none. */
  readonly validator: string
}
