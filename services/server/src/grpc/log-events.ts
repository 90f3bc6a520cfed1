import type { Logger } from '@tutti/chassis'
import type { ServeError } from '@tutti/errors'

/** The log lines of a gRPC server. The logger that it is given says which server it is. */
export class GrpcLog {
  readonly #log: Logger

  constructor(log: Logger) {
    this.#log = log
  }

  listening(address: string, port: number): void {
    this.#log.info('listening', { address, port })
  }

  connectionDropped(maxConnections: number): void {
    this.#log.warn('connection dropped at the bound', { maxConnections })
  }

  listenerFailed(error: Error): void {
    this.#log.error('listener failed', { error })
  }

  /** An error for a bug or an unknown error; debug for what a client did wrong or has to wait for. */
  callFailed(method: string, error: ServeError): void {
    if (error.reason === 'INTERNAL') this.#log.error('call failed', { method, error })
    else if (this.#log.isDebug) this.#log.debug('call refused', { method, error })
  }

  answerNotTaken(timeoutMs: number): void {
    if (this.#log.isDebug)
      this.#log.debug('call cut off, its client takes no answer', { timeoutMs })
  }

  drainTimedOut(calls: number): void {
    this.#log.warn('drain timed out', { calls })
  }
}
