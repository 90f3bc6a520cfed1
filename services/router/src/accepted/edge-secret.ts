import { type EdgeRoutes, parseEdgeRoutes } from '@tutti/api'
import type { Logger } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { Secret } from '@tutti/kube'
import { edgeRoutesChanged, edgeRoutesUnreadable } from '../log-events.ts'

/** A change of a Secret that a watch reports. It has the form of a `ReflectorEvent`. */
export interface SecretEvent {
  readonly type: 'added' | 'updated' | 'deleted'
  readonly object: Secret
}

/** The listener for changes of one Secret. */
export interface SecretListener {
  readonly onEvent: (event: SecretEvent) => void
  /** Called once, after the event of the Secret if it existed at first. */
  readonly onSynced: () => void
}

/** Watches one Secret until the result is closed. */
export type WatchSecret = (listener: SecretListener) => { close(): Promise<void> }

/** The key of the Secret. */
const KEY = 'edge.json'
const NOTHING: EdgeRoutes = { routes: [] }

/**
 * The routes of requests from outside, from a Secret that the operator writes. They change as soon as the API server reports a
 * change. While it cannot be reached, or the Secret cannot be read, they stay as they were. Without a Secret no request gets
 * in.
 */
export class EdgeSecret {
  readonly #log: Logger
  readonly #watch: { close(): Promise<void> }
  #access: EdgeRoutes = NOTHING
  #hasSynced = false

  constructor({ watch, log }: { readonly watch: WatchSecret; readonly log: Logger }) {
    this.#log = log
    this.#watch = watch({
      onEvent: (event) => this.#changed(event),
      onSynced: () => {
        this.#hasSynced = true
      },
    })
  }

  /** Routes that are in force; the same object until the Secret changes. */
  get access(): EdgeRoutes {
    return this.#access
  }

  /** False until the Secret has been read once, or is known to be absent. */
  get hasSynced(): boolean {
    return this.#hasSynced
  }

  /** Revisions of the routes that count now. */
  get revisions(): readonly string[] {
    return this.#access.routes.flatMap(({ revision }) => revision ?? [])
  }

  async close(): Promise<void> {
    await this.#watch.close()
  }

  #changed({ type, object }: SecretEvent): void {
    try {
      this.#access = type === 'deleted' ? NOTHING : parse(object)
      edgeRoutesChanged(this.#log, this.#access.routes.length)
    } catch (error) {
      edgeRoutesUnreadable(this.#log, ServeError.from(error))
    }
  }
}

function parse({ metadata, data }: Secret): EdgeRoutes {
  const text = Buffer.from(data?.[KEY] ?? '', 'base64').toString()
  try {
    return parseEdgeRoutes(JSON.parse(text))
  } catch (cause) {
    const what = `--edge-secret-name: Secret "${metadata.name}", key ${KEY}: ${ServeError.from(cause).message}`
    throw new ServeError('SETTING_INVALID', what, {
      details: { field: '--edge-secret-name' },
      cause,
    })
  }
}
