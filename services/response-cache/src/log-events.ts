import type { Logger } from '@tutti/chassis'

/** The log lines of the response cache in Redis: one for each change of its state. */
export class RedisCacheEvents {
  readonly #log: Logger

  /** @param log - says where Redis is. */
  constructor(log: Logger) {
    this.#log = log
  }

  connected(): void {
    this.#log.info('response cache is connected')
  }

  away(problem: string): void {
    this.#log.warn('response cache is away, requests are executed', { problem })
  }

  full(problem: string): void {
    this.#log.warn('response cache takes no responses', { problem })
  }

  notFull(): void {
    this.#log.info('response cache takes responses again')
  }

  foreignEntry(key: string): void {
    this.#log.warn('response cache has an entry that is not ours', { key })
  }

  poolSizeUnused(): void {
    this.#log.info('pool_size has no effect, one connection takes many lookups at a time')
  }
}
