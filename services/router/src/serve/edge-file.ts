import { type EdgeRoutes, parseEdgeRoutes } from '@tutti/api'
import { type Clock, followFiles, type Logger, readFiles } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { edgeRoutesChanged, edgeRoutesUnreadable } from '../log-events.ts'

export interface EdgeFileOptions {
  readonly path: string
  readonly clock: Clock
  readonly log: Logger
}

/**
 * The routes of requests from outside, from a file that is read again when it changes. If the file cannot be read later, the
 * routes stay as they were.
 */
export class EdgeFile {
  /** Stops following the file. */
  readonly close: () => void
  #access: EdgeRoutes

  private constructor({ path, clock, log }: EdgeFileOptions, texts: readonly string[]) {
    this.#access = parse(path, texts)
    this.close = followFiles({
      ...filesOf(path),
      texts,
      take: (changed) => {
        this.#access = parse(path, changed)
        edgeRoutesChanged(log, this.#access.routes.length)
      },
      failed: (error) => edgeRoutesUnreadable(log, error),
      clock,
    })
  }

  /**
   * Reads the file and begins to follow its changes.
   *
   * @throws ServeError SETTING_INVALID if the file cannot be read or parsed at the start.
   */
  static async open(o: EdgeFileOptions): Promise<EdgeFile> {
    return new EdgeFile(o, await readFiles(filesOf(o.path)))
  }

  /** Routes that are in force; the same object until the file changes. */
  get access(): EdgeRoutes {
    return this.#access
  }
}

function filesOf(path: string) {
  const refuse = (_: string, cause: Error) => refused(path, 'it cannot be read', cause)
  return { paths: [path], refuse }
}

function parse(path: string, [text = '']: readonly string[]): EdgeRoutes {
  try {
    return parseEdgeRoutes(JSON.parse(text))
  } catch (cause) {
    throw refused(path, cause instanceof Error ? cause.message : 'it does not parse', cause)
  }
}

function refused(path: string, what: string, cause: unknown): ServeError {
  const text = `--edge-file: ${path}: ${what}`
  return new ServeError('SETTING_INVALID', text, { details: { field: '--edge-file' }, cause })
}
