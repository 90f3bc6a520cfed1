import type { PinnedVersion } from '@tutti/ensemble'
import { ServeError } from '@tutti/errors'
import type { HostedModel, Serving } from './hosted-model.ts'

/** A version that takes no new requests, until those that pinned it are answered. */
export interface Retired {
  readonly pin: PinnedVersion
  readonly serving: Serving
  /** The same revision is served anew: requests that pinned it may go there. */
  readonly replaced: PromiseWithResolvers<void>
}

/** The models of a process, and what it served before as long as requests use it. Requests read it; only ModelChanges writes it. */
export class ModelTable {
  readonly byName = new Map<string, HostedModel>()
  readonly retiredByPin = new Map<string, Retired>()

  get(name: string): HostedModel | undefined {
    return this.byName.get(name)
  }

  /**
   * What serves requests that pinned a revision which was replaced or unloaded.
   *
   * @throws ServeError MODEL_NOT_FOUND, MODEL_NOT_READY or REVISION_GONE if nothing does.
   */
  getPinned(pin: PinnedVersion): Serving {
    const retired = this.retiredByPin.get(pinKey(pin))
    if (retired !== undefined) return retired.serving
    const unknown = `Request for unknown model: '${pin.model}'`
    const model = this.get(pin.model)
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

  /** Sorted by name: models load in no fixed order, and answers should not vary with it. */
  get models(): readonly HostedModel[] {
    return [...this.byName.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1))
  }

  get retiredPins(): readonly PinnedVersion[] {
    return [...this.retiredByPin.values()].map(({ pin }) => pin)
  }

  /** Everything in memory, retired or not. */
  get servings(): readonly Serving[] {
    const versions = [...this.byName.values()].flatMap((model) => [...model.versions.values()])
    return [...versions, ...this.retiredByPin.values()].flatMap(({ serving }) => serving ?? [])
  }
}

export function pinKey({ model, version, revision }: PinnedVersion): string {
  return `${model} ${version} ${revision}`
}
