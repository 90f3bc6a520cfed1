import { type Logger, requestFields, type TraceParent } from '@tutti/chassis'
import type { ServeError } from '@tutti/errors'

/** The facts about a failed request that its log line names. */
export interface FailedRequest {
  /** The id that its client gave it; '' for none. */
  readonly id: string
  readonly trace?: TraceParent | undefined
}

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

  /** Logs a failed call: as an error if its reason is INTERNAL, a bug or an unknown error; else as debug. */
  callFailed(method: string, error: ServeError, of: FailedRequest): void {
    const fields = () => ({ method, ...requestFields(of.id, of.trace), error })
    if (error.reason === 'INTERNAL') this.#log.error('call failed', fields())
    else if (this.#log.isDebug) this.#log.debug('call refused', fields())
  }

  answerNotTaken(timeoutMs: number): void {
    if (this.#log.isDebug)
      this.#log.debug('call cut off, its client takes no answer', { timeoutMs })
  }

  drainTimedOut(calls: number): void {
    this.#log.warn('drain timed out', { calls })
  }
}
