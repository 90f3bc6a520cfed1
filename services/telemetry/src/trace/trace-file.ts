import { closeSync, openSync, writeSync } from 'node:fs'
import type { Logger } from '@tutti/chassis'

export interface TraceFileOptions {
  /** `PATH`, or with an index `PATH.0`, `PATH.1` and so on. */
  readonly path: string
  readonly log: Logger
}

/**
 * Writes traces as arrays of JSON: each trace as soon as it is whole, so that none is kept in memory. A file is valid JSON once it is
 * complete. A disk that fails loses traces, not requests.
 */
export class TraceFile {
  readonly #options: TraceFileOptions
  #open: { readonly descriptor: number; readonly frequency: number } | undefined
  #index = 0
  /** Traces in the open file. */
  #written = 0

  constructor(o: TraceFileOptions) {
    this.#options = o
  }

  /**
   * @param events - of one trace, each one JSON text.
   * @param frequency - traces in a file; 0 for all in one without an index.
   */
  write(events: readonly string[], frequency: number): void {
    try {
      if (this.#open !== undefined && this.#open.frequency !== frequency) this.#end()
      this.#open ??= this.#begin(frequency)
      const text = (this.#written === 0 ? '[' : ',') + events.join(',')
      writeSync(this.#open.descriptor, text)
      this.#written += 1
      if (this.#written === frequency) this.#end()
    } catch (error) {
      this.#options.log.warn('trace not written', { error })
    }
  }

  /** Completes the file. */
  close(): void {
    try {
      this.#end()
    } catch (error) {
      this.#options.log.warn('trace not written', { error })
    }
  }

  #begin(frequency: number) {
    const { path } = this.#options
    const name = frequency === 0 ? path : `${path}.${this.#index++}`
    return { descriptor: openSync(name, 'w'), frequency }
  }

  #end(): void {
    const open = this.#open
    if (open === undefined) return
    this.#open = undefined
    this.#written = 0
    try {
      writeSync(open.descriptor, ']')
    } finally {
      closeSync(open.descriptor)
    }
  }
}
