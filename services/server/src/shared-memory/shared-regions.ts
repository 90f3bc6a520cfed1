import { ServeError } from '@tutti/errors'
import { NAME_BYTES } from '@tutti/tensor'
import { Region, type RegionRequest, unknownRegion } from './region.ts'

/** Regions that are registered at the same time. Each holds a file descriptor. */
export const MAX_REGIONS = 4096

/** The regions of shared memory that clients have registered: one for all listeners of a process, as in Triton. */
export class SharedRegions {
  readonly #regions = new Map<string, Region>()

  /** @throws ServeError with Triton's text, OVERLOADED for too many regions. */
  register(request: RegionRequest): void {
    const { name, key } = request
    this.refuseTaken(name)
    if (Buffer.byteLength(name) > NAME_BYTES || Buffer.byteLength(key) > NAME_BYTES) {
      const text = `name or key of a shared memory region is too long, want at most ${NAME_BYTES} bytes`
      throw new ServeError('MESSAGE_TOO_LARGE', text)
    }
    if (this.#regions.size >= MAX_REGIONS) {
      const text = `${MAX_REGIONS} shared memory regions are registered, want no more`
      throw new ServeError('OVERLOADED', text)
    }
    this.#regions.set(name, new Region(request))
  }

  /** @throws ServeError ALREADY_EXISTS for a name that is in use. */
  refuseTaken(name: string): void {
    if (!this.#regions.has(name)) return
    const text = `shared memory region '${name}' already in manager`
    throw new ServeError('INVALID_PARAMETER', text, { code: 'ALREADY_EXISTS' })
  }

  /** @param name - '' for all. @throws ServeError NOT_FOUND */
  status(name: string): readonly RegionRequest[] {
    const wanted = name === '' ? [...this.#regions.values()] : [this.#regions.get(name)]
    return wanted.map((region) => {
      if (region !== undefined) return region.request
      const text = `Unable to find system shared memory region: '${name}'`
      throw new ServeError('NOT_FOUND', text)
    })
  }

  /** Forgets a region; one that is not there is no error. @param name - '' for all. @throws ServeError if requests use it. */
  unregister(name: string): void {
    const wanted = name === '' ? [...this.#regions.keys()] : [name]
    const inUse = wanted.filter((one) => !this.#forget(one))
    if (inUse.length === 0) return
    const text =
      name === ''
        ? `Failed to unregister the following system shared memory regions: ${inUse.join(' ,')} ,`
        : `Cannot unregister shared memory region '${name}', it is currently in use.`
    throw new ServeError('INVALID_PARAMETER', text, { code: 'INTERNAL' })
  }

  /** @throws ServeError NOT_FOUND */
  find(name: string): Region {
    const region = this.#regions.get(name)
    if (region === undefined) throw unknownRegion(name)
    return region
  }

  /** Closes all; what is still to be written fails. */
  close(): void {
    for (const region of this.#regions.values()) region.close()
    this.#regions.clear()
  }

  #forget(name: string): boolean {
    const region = this.#regions.get(name)
    if (region === undefined) return true
    if (region.uses > 0) return false
    region.close()
    return this.#regions.delete(name)
  }
}
