import type { PinnedVersion } from '@tutti/ensemble'
import { ServeError } from '@tutti/errors'
import type { ServerMetrics } from '@tutti/front-door'
import type { HostedModel, HostedVersion, Serving } from './hosted-model.ts'
import type { StepEvents } from './log-events.ts'

export interface ModelTableOptions {
  readonly events: StepEvents
  readonly metrics?: ServerMetrics
  /** Resolves once no request that pinned the version can come any more; at once if absent. */
  readonly unpinned?: (pin: PinnedVersion) => Promise<void>
  /** What the table says has changed. */
  changed(): void
}

/** A version that takes no new requests, until those that pinned it are answered. */
interface Retired {
  readonly pin: PinnedVersion
  readonly serving: Serving
  /** The same revision is served anew: who pinned it may go there. */
  readonly replaced: PromiseWithResolvers<void>
}

/** Models without a version in memory that stay listed; a bound, because load requests make names. */
const MAX_UNLOADED = 1024

/**
 * The models of a process, and what it served before as long as requests use it: a version that is replaced or unloaded takes
 * the requests that pinned it, finishes them, and is closed then.
 */
export class ModelTable {
  readonly #o: ModelTableOptions
  readonly #models = new Map<string, HostedModel>()
  readonly #retired = new Map<string, Retired>()
  readonly #closing = new Set<Promise<void>>()
  /** By name: models load in no fixed order, and answers should not vary with it. */
  #sorted: readonly HostedModel[] = []
  #isClosed = false

  constructor(o: ModelTableOptions) {
    this.#o = o
  }

  /** Sorted by name. */
  get models(): readonly HostedModel[] {
    return this.#sorted
  }

  get(name: string): HostedModel | undefined {
    return this.#models.get(name)
  }

  /** What serves requests that pinned a revision which is not current any more. */
  retired(pin: PinnedVersion): Serving | undefined {
    return this.#retired.get(pinKey(pin))?.serving
  }

  get retiredPins(): readonly PinnedVersion[] {
    return [...this.#retired.values()].map(({ pin }) => pin)
  }

  /** Everything in memory, retired or not. */
  get servings(): readonly Serving[] {
    const current = this.#sorted.flatMap(({ versions }) =>
      [...versions.values()].flatMap(({ serving }) => serving ?? []),
    )
    return [...current, ...[...this.#retired.values()].map(({ serving }) => serving)]
  }

  /** From now on the model is this one; what was in its place is retired, and listed until it is gone if nothing replaces it. */
  put(next: HostedModel): void {
    const before = this.#models.get(next.name)
    const versions = new Map(next.versions)
    for (const old of before?.versions.values() ?? []) {
      if (!versions.has(old.version)) versions.set(old.version, toUnlisted(old))
    }
    const sorted = [...versions].toSorted(([a], [b]) => a - b)
    const model = { ...next, versions: new Map(sorted) }
    this.#place(model)
    this.#serveAgain(model)
    if (before !== undefined) this.#retire(before, model)
    this.#addMetrics(next)
    this.#forgetSome()
    this.#o.changed()
  }

  /** Takes the model away; its versions stay listed. Nothing happens to a name that is not known. */
  unload(name: string): void {
    const before = this.#models.get(name)
    if (before === undefined) return
    if (before.versions.size === 0) {
      this.#forget(before)
      return
    }
    const versions = new Map([...before.versions].map(([n, old]) => [n, toUnlisted(old)]))
    const model = { ...before, versions, digest: '', release: async () => {} }
    // Last among the unloaded, so that the longest unloaded ones are forgotten first.
    this.#models.delete(name)
    this.#place(model)
    this.#retire(before, model)
    this.#forgetSome()
    this.#o.changed()
  }

  /** A model of which nothing was ever loaded is not listed any more. */
  #forget(model: HostedModel): void {
    this.#models.delete(model.name)
    this.#sorted = this.#sorted.filter(({ name }) => name !== model.name)
    const released = model.release().finally(() => this.#closing.delete(released))
    this.#closing.add(released)
    this.#o.changed()
  }

  /** Closes everything in memory. Their schedulers must have been stopped. */
  async close(): Promise<void> {
    this.#isClosed = true
    for (const { name } of this.#sorted) this.unload(name)
    for (const { replaced } of this.#retired.values()) replaced.resolve()
    while (this.#closing.size > 0) await Promise.all(this.#closing)
  }

  #place(model: HostedModel): void {
    this.#models.set(model.name, model)
    this.#sorted = [...this.#models.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1))
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
      this.#retired.get(pinKey({ model, version, revision }))?.replaced.resolve()
    }
  }

  /** @param now - what stands in its place; its versions of the same number tell how far the old ones are. */
  #retire(before: HostedModel, now: HostedModel): void {
    const open: Promise<void>[] = []
    for (const { version, revision, serving } of before.versions.values()) {
      if (serving === undefined) continue
      const pin = { model: before.name, version, revision }
      const current = now.versions.get(version)
      const isReplaced = current?.revision === revision && current.serving !== undefined
      open.push(this.#finish(pin, serving, isReplaced, current))
    }
    if (open.length === 0 && before.release === now.release) return
    const closing = Promise.all(open)
      .then(() => before.release())
      .finally(() => this.#closing.delete(closing))
    this.#closing.add(closing)
  }

  async #finish(
    pin: PinnedVersion,
    serving: Serving,
    isReplaced: boolean,
    listed: HostedVersion | undefined,
  ): Promise<void> {
    const key = pinKey(pin)
    const retired = { pin, serving, replaced: Promise.withResolvers<void>() }
    if (isReplaced || this.#isClosed) retired.replaced.resolve()
    this.#retired.get(key)?.replaced.resolve()
    this.#retired.set(key, retired)
    await Promise.race([this.#o.unpinned?.(pin), retired.replaced.promise])
    await serving.scheduler.drain()
    if (this.#retired.get(key) === retired) this.#retired.delete(key)
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
    const unloaded = [...this.#models.values()].filter((model) => isUnloaded(model))
    for (const { name } of unloaded.slice(0, Math.max(0, unloaded.length - MAX_UNLOADED))) {
      this.#models.delete(name)
    }
    this.#sorted = this.#sorted.filter(({ name }) => this.#models.has(name))
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

function pinKey({ model, version, revision }: PinnedVersion): string {
  return `${model} ${version} ${revision}`
}
