import type { PinnedVersion } from '@tutti/ensemble'
import { ServeError } from '@tutti/errors'
import type { HostedModel, HostedVersion, Serving } from './hosted-model.ts'
import type { StepEvents } from './log-events.ts'
import { type ModelTable, pinKey } from './model-table.ts'
import type { StepSettings } from './step-options.ts'

export interface ModelChangesOptions extends Pick<StepSettings, 'metrics' | 'unpinned'> {
  readonly table: ModelTable
  readonly events: StepEvents
  /** What the table says has changed. */
  changed(): void
}

/** Models without a version in memory that stay listed; a bound, because load requests make names. */
const MAX_UNLOADED = 1024

/**
 * Puts models into the table and takes them out. A version that is replaced or unloaded takes the requests that pinned it, finishes
 * them, and is closed then.
 */
export class ModelChanges {
  readonly #o: ModelChangesOptions
  readonly #table: ModelTable
  readonly #closing = new Set<Promise<void>>()
  #isClosed = false

  constructor(o: ModelChangesOptions) {
    this.#o = o
    this.#table = o.table
  }

  /** From now on the model is this one; what was in its place is retired, and listed until it is gone if nothing replaces it. */
  put(next: HostedModel): void {
    const before = this.#table.get(next.name)
    const versions = new Map(next.versions)
    for (const old of before?.versions.values() ?? []) {
      if (!versions.has(old.version)) versions.set(old.version, toUnlisted(old))
    }
    const model = { ...next, versions: new Map([...versions].toSorted(([a], [b]) => a - b)) }
    this.#table.byName.set(model.name, model)
    this.#serveAgain(model)
    if (before !== undefined) this.#retire(before, model)
    this.#addMetrics(next)
    this.#forgetSome()
    this.#o.changed()
  }

  /** Takes the model away; its versions stay listed. Nothing happens to a name that is not known. */
  unload(name: string): void {
    const before = this.#table.get(name)
    if (before === undefined) return
    // Last among the unloaded, so that the longest unloaded ones are forgotten first.
    this.#table.byName.delete(name)
    if (before.versions.size === 0) {
      // Nothing of it was ever loaded: it is not listed any more.
      this.#close(before.release())
    } else {
      const versions = new Map([...before.versions].map(([n, old]) => [n, toUnlisted(old)]))
      const model = { ...before, versions, digest: '', release: async () => {} }
      this.#table.byName.set(name, model)
      this.#retire(before, model)
      this.#forgetSome()
    }
    this.#o.changed()
  }

  /** Closes everything in memory. The schedulers must have been stopped. */
  async close(): Promise<void> {
    this.#isClosed = true
    for (const { name } of this.#table.models) this.unload(name)
    for (const { replaced } of this.#table.retiredByPin.values()) replaced.resolve()
    while (this.#closing.size > 0) await Promise.all(this.#closing)
  }

  #close(released: Promise<void>): void {
    const closing = released.finally(() => this.#closing.delete(closing))
    this.#closing.add(closing)
  }

  #addMetrics({ name, config, versions }: HostedModel): void {
    for (const { version, serving } of versions.values()) {
      if (serving === undefined) continue
      this.#o.metrics?.addModel(serving.statistics, {
        name,
        version: String(version),
        tags: config?.metric_tags ?? {},
        loadSeconds: serving.loadSeconds,
      })
    }
  }

  /** Retired instances of revisions that are served again need not wait for requests that pinned these. */
  #serveAgain({ name: model, versions }: HostedModel): void {
    for (const { version, revision } of versions.values()) {
      this.#table.retiredByPin.get(pinKey({ model, version, revision }))?.replaced.resolve()
    }
  }

  /** @param now - what stands in its place; its versions of the same number tell how far the old ones are. */
  #retire(before: HostedModel, now: HostedModel): void {
    const open: Promise<void>[] = []
    for (const { version, revision, serving } of before.versions.values()) {
      if (serving === undefined) continue
      const pin = { model: before.name, version, revision }
      open.push(this.#finish(pin, serving, now.versions.get(version)))
    }
    if (open.length === 0 && before.release === now.release) return
    this.#close(Promise.all(open).then(() => before.release()))
  }

  async #finish(
    pin: PinnedVersion,
    serving: Serving,
    listed: HostedVersion | undefined,
  ): Promise<void> {
    const { retiredByPin } = this.#table
    const key = pinKey(pin)
    const retired = { pin, serving, replaced: Promise.withResolvers<void>() }
    const isReplaced = listed?.revision === pin.revision && listed.serving !== undefined
    if (isReplaced || this.#isClosed) retired.replaced.resolve()
    retiredByPin.get(key)?.replaced.resolve()
    retiredByPin.set(key, retired)
    await Promise.race([this.#o.unpinned?.(pin), retired.replaced.promise])
    await serving.scheduler.drain()
    if (retiredByPin.get(key) === retired) retiredByPin.delete(key)
    this.#o.metrics?.removeModel(serving.statistics)
    try {
      await serving.loaded.close()
    } catch (error) {
      this.#o.events.closeFailed(pin.model, pin.version, ServeError.from(error))
    }
    if (listed?.state === 'UNLOADING') {
      listed.state = 'UNAVAILABLE'
      listed.reason = 'unloaded'
    }
    this.#o.changed()
    this.#o.events.versionUnloaded(pin.model, pin.version, pin.revision)
  }

  #forgetSome(): void {
    const unloaded = [...this.#table.byName.values()].filter(isUnloaded)
    for (const { name } of unloaded.slice(0, Math.max(0, unloaded.length - MAX_UNLOADED))) {
      this.#table.byName.delete(name)
    }
  }
}

/** How a version is listed that the model has no more. One that is listed so already stays the object that its end is told to. */
function toUnlisted(old: HostedVersion): HostedVersion {
  const none = { version: old.version, revision: old.revision, serving: undefined }
  if (old.serving !== undefined) return { ...none, state: 'UNLOADING', reason: '' }
  return old.state === 'LOADING' ? { ...none, state: 'UNAVAILABLE', reason: 'unloaded' } : old
}

function isUnloaded({ versions }: HostedModel): boolean {
  return [...versions.values()].every((v) => v.state === 'UNAVAILABLE')
}
