import type { Logger } from '@tutti/chassis'

/** Every log line of this room has a name here. */
export class KubeEvents {
  readonly #log: Logger

  constructor(log: Logger) {
    this.#log = log
  }

  /** @param warning - the header `Warning` of an answer, about a version that is going, say. */
  serverWarned(warning: string): void {
    this.#log.warn('the API server warns', { warning })
  }

  /** The first failure after success is a warning; those that follow it are for debugging. */
  watchFailed(o: {
    readonly resource: string
    readonly error: unknown
    readonly waitMs: number
    readonly isFirst: boolean
  }): void {
    const { isFirst, ...fields } = o
    if (isFirst) this.#log.warn('watch failed', fields)
    else this.#log.debug('watch failed', fields)
  }

  watchRecovered(resource: string, failures: number): void {
    this.#log.info('watch recovered', { resource, failures })
  }

  watchExpired(resource: string): void {
    this.#log.info('watch expired, reading everything anew', { resource })
  }

  watchListMissing(resource: string): void {
    this.#log.info('the API server has no WatchList, reading pages', { resource })
  }

  /** A bug of whoever handles the events. */
  handlerFailed(o: {
    readonly resource: string
    readonly key: string
    readonly type: string
    readonly error: unknown
  }): void {
    this.#log.error('event handler failed', o)
  }
}
