import { ServeError } from '@tutti/errors'
import { NAME_BYTES } from '@tutti/formats'
import { type CudaMemory, CudaRegion, type OpenCudaMemory } from './cuda-region.ts'
import {
  type CudaRequest,
  type Region,
  type RegionKind,
  type SystemRequest,
  unknownRegion,
} from './region.ts'
import { SystemRegion } from './system-region.ts'

/** Most regions that are registered at the same time. Each holds a file descriptor, or memory that CUDA has opened. */
export const MAX_REGIONS = 4096
/** Bytes of a `cudaIpcMemHandle_t`. */
export const HANDLE_BYTES = 64
/** CUDA counts devices with C's `int`. */
const MAX_DEVICE_ID = 2 ** 31 - 1

/** The regions of shared memory that clients have registered. All listeners of a process share one instance, as in Triton. */
export class SharedRegions {
  readonly #regions = new Map<string, Region>()

  readonly #openCudaMemory: OpenCudaMemory | undefined

  /** @param openCudaMemory - opens memory of GPUs; absent: every such region is refused. */
  constructor(openCudaMemory?: OpenCudaMemory) {
    this.#openCudaMemory = openCudaMemory
  }

  /** Registers a region of system shared memory. @throws ServeError with Triton's text, OVERLOADED for too many regions. */
  register(request: SystemRequest): void {
    this.#checkNew(request.name, request.key)
    this.#regions.set(request.name, new SystemRegion(request))
  }

  /**
   * Registers a region of GPU memory.
   *
   * @throws ServeError as `register`, always without a driver; with CUDA's words if CUDA refuses.
   */
  async registerCuda(request: CudaRequest): Promise<void> {
    this.#refuseTaken(request.name)
    const memory = await this.#openCuda(request)
    try {
      // Others may have registered it meanwhile.
      this.#checkNew(request.name)
      this.#regions.set(request.name, new CudaRegion(request, memory))
    } catch (error) {
      memory.close()
      throw error
    }
  }

  /** Lists regions of a kind, `system` by default. @param name - '' for all of the kind. @throws ServeError NOT_FOUND */
  status(name: string): readonly SystemRequest[]
  status(name: string, kind: RegionKind): readonly Region['request'][]
  status(name: string, kind: RegionKind = 'system'): readonly Region['request'][] {
    const wanted = this.#wanted(name, kind)
    if (name === '' || wanted.length > 0) return wanted.map(({ request }) => request)
    throw new ServeError('NOT_FOUND', `Unable to find ${kind} shared memory region: '${name}'`)
  }

  /**
   * Forgets a region, if it is registered.
   *
   * @param name - '' for all of the kind.
   * @throws ServeError for regions that requests use.
   */
  unregister(name: string, kind: RegionKind = 'system'): void {
    const inUse = this.#wanted(name, kind).filter((region) => !this.#forget(region))
    if (inUse.length === 0) return
    const names = inUse.map(({ request }) => `${request.name} ,`)
    const text =
      name === ''
        ? `Failed to unregister the following ${kind} shared memory regions: ${names.join('')}`
        : `Cannot unregister shared memory region '${name}', it is currently in use.`
    throw new ServeError('INVALID_PARAMETER', text, { code: 'INTERNAL' })
  }

  /** Finds a registered region by its name. @throws ServeError NOT_FOUND */
  find(name: string): Region {
    const region = this.#regions.get(name)
    if (region === undefined) throw unknownRegion(name)
    return region
  }

  /** Closes all regions. Copies that are still to be made fail. */
  close(): void {
    for (const region of this.#regions.values()) region.close()
    this.#regions.clear()
  }

  /** @throws ServeError ALREADY_EXISTS for a name that is in use. */
  #refuseTaken(name: string): void {
    if (!this.#regions.has(name)) return
    const text = `shared memory region '${name}' already in manager`
    throw new ServeError('INVALID_PARAMETER', text, { code: 'ALREADY_EXISTS' })
  }

  /** @throws ServeError for a name that is in use or too long, OVERLOADED for too many regions. */
  #checkNew(name: string, key = ''): void {
    this.#refuseTaken(name)
    if (Buffer.byteLength(name) > NAME_BYTES || Buffer.byteLength(key) > NAME_BYTES) {
      const text = `name or key of a shared memory region is too long, want at most ${NAME_BYTES} bytes`
      throw new ServeError('MESSAGE_TOO_LARGE', text)
    }
    if (this.#regions.size < MAX_REGIONS) return
    const text = `${MAX_REGIONS} shared memory regions are registered, want no more`
    throw new ServeError('OVERLOADED', text)
  }

  async #openCuda({ handle, deviceId }: CudaRequest): Promise<CudaMemory> {
    const text = 'failed to register shared memory region: invalid args'
    const isDevice = deviceId >= 0 && deviceId <= MAX_DEVICE_ID
    const isNamed = isDevice && handle.byteLength === HANDLE_BYTES
    const memory = await (isNamed ? this.#openCudaMemory : undefined)?.(handle, deviceId).catch(
      (cause: unknown) => {
        const { message } = ServeError.from(cause)
        throw new ServeError('INVALID_PARAMETER', `${text}: ${message}`, { cause })
      },
    )
    if (memory !== undefined) return memory
    throw new ServeError('INVALID_PARAMETER', text)
  }

  #wanted(name: string, kind: RegionKind): readonly Region[] {
    const region = this.#regions.get(name)
    const named = name === '' ? [...this.#regions.values()] : region === undefined ? [] : [region]
    return named.filter((one) => one.kind === kind)
  }

  #forget(region: Region): boolean {
    if (region.uses > 0) return false
    region.close()
    return this.#regions.delete(region.request.name)
  }
}
