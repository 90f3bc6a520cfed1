import type { Logger } from '@tutti/chassis'

const MOST_WARNINGS = 100

/** Every log line of this package has a name here. */
export class KubeEvents {
  readonly #log: Logger
  /** Different texts that are remembered; a server has a few. */
  readonly #warnings = new Set<string>()

  constructor(log: Logger) {
    this.#log = log
  }

  /** Logs each warning once. @param warning - the header `Warning` of an answer, e.g. about a deprecated version. */
  serverWarned(warning: string | undefined): void {
    const { size } = this.#warnings
    if (warning === undefined || size === MOST_WARNINGS) return
    if (this.#warnings.add(warning).size > size) this.#log.warn('the API server warns', { warning })
  }

  /** Logs a failed watch: the first failure after success at level warn, further failures at level debug. */
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
    this.#log.info('watch expired, reading everything again', { resource })
  }

  watchListMissing(resource: string): void {
    this.#log.info('the API server has no WatchList, reading pages', { resource })
  }

  /** Logs an error that the handler of the events threw, which is a bug. */
  handlerFailed(o: {
    readonly resource: string
    readonly key: string
    readonly type: string
    readonly error: unknown
  }): void {
    this.#log.error('event handler failed', o)
  }
}
