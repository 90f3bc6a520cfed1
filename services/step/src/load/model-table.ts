import type { PinnedVersion } from '@tutti/api'
import { ServeError } from '@tutti/errors'
import { firstResponseBuckets } from '@tutti/telemetry'
import type { StepEvents } from '../log-events.ts'
import type { StepSettings } from '../step-options.ts'
import { closeServing, type HostedModel, type HostedVersion, type Serving } from './hosted-model.ts'

export interface TableDependencies extends Pick<StepSettings, 'metrics' | 'unpinned'> {
  readonly events: StepEvents
  /** Called when the content of the table has changed. */
  changed(): void
}

/** A version that takes no new requests, until those that pinned it are answered. */
interface Retired {
  readonly pin: PinnedVersion
  readonly serving: Serving
  /** Resolves when the same revision is served anew: requests that pinned it may go there. */
  readonly replaced: PromiseWithResolvers<void>
}

/** Models without a version in memory that stay listed; limited, because load requests make names. */
const MAX_UNLOADED = 1024

/**
 * The models of a process, and what it served before as long as requests use it. A version that is replaced or unloaded takes the
 * requests that pinned it, finishes them, and is closed then.
 */
export class ModelTable {
  readonly byName = new Map<string, HostedModel>()
  readonly #dependencies: TableDependencies
  readonly #retiredByPin = new Map<string, Retired>()
  readonly #closing = new Set<Promise<void>>()
  #isClosed = false

  constructor(o: TableDependencies) {
    this.#dependencies = o
  }

  /** Finds a revision that was replaced or unloaded; else says why there is none. */
  #getRetired(pin: PinnedVersion): Serving {
    const retired = this.#retiredByPin.get(pinKey(pin))
    if (retired !== undefined) return retired.serving
    const unknown = `Request for unknown model: '${pin.model}'`
    const model = this.byName.get(pin.model)
    if (model === undefined) throw new ServeError('MODEL_NOT_FOUND', `${unknown} is not found`)
    const version = model.versions.get(pin.version)
    if (version === undefined) {
      throw new ServeError('MODEL_NOT_FOUND', `${unknown} version ${pin.version} is not found`)
    }
    if (version.serving === undefined) {
      throw new ServeError(
        'MODEL_NOT_READY',
        `${unknown} version ${pin.version} is not at ready state`,
      )
    }
    throw new ServeError(
      'REVISION_GONE',
      `model '${pin.model}' version ${pin.version}: revision ${pin.revision} is pinned, ${version.revision} is served`,
    )
  }

  /**
   * Finds what serves requests that pinned a revision, be it replaced or unloaded meanwhile.
   *
   * @throws ServeError MODEL_NOT_FOUND, MODEL_NOT_READY or REVISION_GONE if nothing does.
   */
  findPinned(pin: PinnedVersion): Serving {
    const current = this.byName.get(pin.model)?.versions.get(pin.version)
    const serving = current?.revision === pin.revision ? current.serving : undefined
    return serving ?? this.#getRetired(pin)
  }

  /** Sorted by name: models load in no fixed order, and answers should not vary with it. */
  get models(): readonly HostedModel[] {
    return [...this.byName.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1))
  }

  /** Versions, as [model, version, revision], that were replaced or unloaded and still execute requests that pinned them. */
  get retiredPins(): readonly (readonly [string, number, string])[] {
    const pins = [...this.#retiredByPin.values()].map(({ pin }) => pin)
    return pins.map(({ model, version, revision }) => [model, version, revision])
  }

  /** All versions in memory, retired ones too. */
  get servings(): readonly Serving[] {
    const versions = [...this.byName.values()].flatMap((model) => [...model.versions.values()])
    return [...versions, ...this.#retiredByPin.values()].flatMap(({ serving }) => serving ?? [])
  }

  /**
   * Puts a model in the place of the one with its name. Versions of that one are retired, and listed until they are gone if none
   * replaces them.
   */
  put(next: HostedModel): void {
    const before = this.byName.get(next.name)
    const versions = new Map(next.versions)
    for (const old of before?.versions.values() ?? []) {
      // A failure is told until a load does without that version: it would keep the server from being ready.
      if (!versions.has(old.version) && !hasFailed(old)) versions.set(old.version, toUnlisted(old))
    }
    const model = { ...next, versions: ascending(versions) }
    this.byName.set(model.name, model)
    this.#begin(model)
    if (before !== undefined) this.#retire(before, model)
    this.#forgetSome()
    this.#dependencies.changed()
  }

  /**
   * Lists, beside the versions that are served, those of the last load that are not.
   *
   * @param versions - none if that load was right; then former failures go.
   */
  listFailed(name: string, versions: HostedModel['versions']): void {
    const before = this.byName.get(name)
    if (before === undefined) return
    if (versions.size === 0 && ![...before.versions.values()].some(hasFailed)) return
    const listed = new Map([...before.versions].filter(([, old]) => !hasFailed(old)))
    for (const failed of versions.values()) {
      if (listed.get(failed.version)?.serving === undefined) listed.set(failed.version, failed)
    }
    this.byName.set(name, { ...before, versions: ascending(listed) })
    this.#dependencies.changed()
  }

  /**
   * Takes a model out of service whose engine can execute nothing more; its versions stay listed as UNAVAILABLE, and what waits
   * for them is refused. Nothing happens if the revision is not served.
   */
  lose({ model: name, version, revision }: PinnedVersion, reason: string): void {
    const before = this.byName.get(name)
    const lost = before?.versions.get(version)
    if (before === undefined || lost?.serving === undefined || lost.revision !== revision) return
    const versions = new Map([...before.versions].map(([n, old]) => [n, toLost(old, reason)]))
    for (const { serving } of before.versions.values()) serving?.scheduler.refuseWaiting()
    // Without a digest, so that the next load of the same files is one.
    const model = { ...before, versions, digest: '', release: async () => {} }
    this.byName.set(name, model)
    this.#retire(before, model)
    this.#dependencies.changed()
  }

  /** Takes the model away; its versions stay listed. Nothing happens to a name that is not known. */
  unload(name: string): void {
    const before = this.byName.get(name)
    if (before === undefined) return
    // Last among the unloaded, so that the longest unloaded ones are forgotten first.
    this.byName.delete(name)
    if (before.config === undefined) {
      // It never came to loading: it is no longer listed.
      this.#close(before.release())
    } else {
      const versions = new Map([...before.versions].map(([n, old]) => [n, toUnlisted(old)]))
      const reason = versions.size === 0 ? 'unloaded' : ''
      const model = { ...before, versions, reason, digest: '', release: async () => {} }
      this.byName.set(name, model)
      this.#retire(before, model)
      this.#forgetSome()
    }
    this.#dependencies.changed()
  }

  /** Closes everything in memory. The schedulers must have been stopped. */
  async close(): Promise<void> {
    this.#isClosed = true
    for (const { name } of this.models) this.unload(name)
    for (const { replaced } of this.#retiredByPin.values()) replaced.resolve()
    while (this.#closing.size > 0) await Promise.all(this.#closing)
  }

  #close(released: Promise<void>): void {
    const closing = released.finally(() => this.#closing.delete(closing))
    this.#closing.add(closing)
  }

  #begin({ name, config, versions }: HostedModel): void {
    for (const { version, revision, serving } of versions.values()) {
      // Retired instances of a revision that is served again need not wait for requests that pinned it.
      this.#retiredByPin.get(pinKey({ model: name, version, revision }))?.replaced.resolve()
      if (serving === undefined) continue
      this.#dependencies.metrics?.addModel(serving.statistics, {
        name,
        version: String(version),
        tags: config?.metric_tags ?? {},
        buckets: firstResponseBuckets(config),
        loadSeconds: serving.loadSeconds,
      })
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
    const key = pinKey(pin)
    const retired = { pin, serving, replaced: Promise.withResolvers<void>() }
    const isReplaced = listed?.revision === pin.revision && listed.serving !== undefined
    if (isReplaced || this.#isClosed) retired.replaced.resolve()
    this.#retiredByPin.get(key)?.replaced.resolve()
    this.#retiredByPin.set(key, retired)
    await Promise.race([this.#dependencies.unpinned?.(pin), retired.replaced.promise])
    await drain(serving)
    if (this.#retiredByPin.get(key) === retired) this.#retiredByPin.delete(key)
    this.#dependencies.metrics?.removeModel(serving.statistics)
    try {
      await closeServing(serving)
    } catch (error) {
      this.#dependencies.events.closeFailed(pin.model, pin.version, ServeError.from(error))
    }
    if (listed?.state === 'UNLOADING') {
      listed.state = 'UNAVAILABLE'
      listed.reason = 'unloaded'
    }
    this.#dependencies.changed()
    this.#dependencies.events.versionUnloaded(pin.model, pin.version, pin.revision)
  }

  #forgetSome(): void {
    const unloaded = [...this.byName.values()].filter(isUnloaded)
    for (const { name } of unloaded.slice(0, Math.max(0, unloaded.length - MAX_UNLOADED))) {
      this.byName.delete(name)
    }
  }
}

async function drain({ cached, scheduler }: Serving): Promise<void> {
  await cached?.settled()
  await scheduler.drain()
  // Nothing waits any longer; what is kept for sequences is let go.
  scheduler.stop()
}

/** Makes the key of a model version of one revision. */
export function pinKey({ model, version, revision }: PinnedVersion): string {
  return `${model} ${version} ${revision}`
}

/**
 * Lists a version that the model no longer has. A version that is listed so already stays the same object, which learns of its
 * end.
 */
function toUnlisted(old: HostedVersion): HostedVersion {
  const none = { version: old.version, revision: old.revision, serving: undefined }
  if (old.serving !== undefined) return { ...none, state: 'UNLOADING', reason: '' }
  return old.state === 'LOADING' ? { ...none, state: 'UNAVAILABLE', reason: 'unloaded' } : old
}

/** Lists a version that is served as one that is not. */
function toLost(old: HostedVersion, reason: string): HostedVersion {
  if (old.serving === undefined) return old
  return { ...old, serving: undefined, state: 'UNAVAILABLE', reason }
}

function hasFailed({ state, reason }: HostedVersion): boolean {
  return state === 'UNAVAILABLE' && reason !== 'unloaded'
}

function ascending(versions: HostedModel['versions']): HostedModel['versions'] {
  return new Map([...versions].toSorted(([a], [b]) => a - b))
}

function isUnloaded({ versions }: HostedModel): boolean {
  return [...versions.values()].every((v) => v.state === 'UNAVAILABLE')
}
