import { readFile } from 'node:fs/promises'
import type { Clock, Logger } from '@tutti/chassis'
import { type EdgeRoutes, parseEdgeRoutes } from '@tutti/ensemble'
import { ServeError } from '@tutti/errors'
import { edgeRoutesChanged, edgeRoutesUnreadable } from '../log-events.ts'

export interface EdgeFileOptions {
  readonly path: string
  readonly clock: Clock
  readonly log: Logger
}

/** A mounted Secret is replaced as a whole; looking at it costs less than what would have to be watched for that. */
const LOOK_MS = 1000

/** The routes of requests from outside, from a file. If the file cannot be read later, they stay as they were. */
export class EdgeFile {
  readonly #o: EdgeFileOptions
  #text: string
  #routes: EdgeRoutes['routes']
  #complaint = ''
  #isClosed = false
  #stopTimer: () => void = () => {}

  private constructor(o: EdgeFileOptions, text: string) {
    this.#o = o
    this.#text = text
    this.#routes = parse(o.path, text)
    this.#lookLater()
  }

  /** @throws ServeError SETTING_INVALID if it cannot be read at the start. */
  static async open(o: EdgeFileOptions): Promise<EdgeFile> {
    return new EdgeFile(o, await read(o.path))
  }

  /** The same list until the file has changed. */
  get routes(): EdgeRoutes['routes'] {
    return this.#routes
  }

  close(): void {
    this.#isClosed = true
    this.#stopTimer()
  }

  #lookLater(): void {
    if (this.#isClosed) return
    this.#stopTimer = this.#o.clock.setTimer(LOOK_MS, () => {
      void this.#look().finally(() => this.#lookLater())
    })
  }

  async #look(): Promise<void> {
    const { path, log } = this.#o
    try {
      const text = await read(path)
      if (text !== this.#text) {
        this.#routes = parse(path, text)
        this.#text = text
        edgeRoutesChanged(log, this.#routes.length)
      }
      this.#complaint = ''
    } catch (thrown) {
      const error = ServeError.from(thrown)
      // Once for each complaint, not every second.
      if (error.message !== this.#complaint) edgeRoutesUnreadable(log, error)
      this.#complaint = error.message
    }
  }
}

async function read(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (cause) {
    throw refused(path, 'it cannot be read', cause)
  }
}

function parse(path: string, text: string): EdgeRoutes['routes'] {
  try {
    return parseEdgeRoutes(JSON.parse(text)).routes
  } catch (cause) {
    throw refused(path, cause instanceof Error ? cause.message : 'it does not parse', cause)
  }
}

function refused(path: string, what: string, cause: unknown): ServeError {
  const text = `--edge-file: ${path}: ${what}`
  return new ServeError('SETTING_INVALID', text, { details: { field: '--edge-file' }, cause })
}
