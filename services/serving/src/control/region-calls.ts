import { ServeError } from '@tutti/errors'
import {
  type CudaRequest,
  type Region,
  type RegionKind,
  SharedRegions,
  type SystemRequest,
} from '@tutti/shared-memory'
import type { ControlCall, ControlCalls } from './control-calls.ts'

type Caller = Omit<ControlCall, 'action' | 'model'>

/** A region in the words of both protocols. */
export interface RegionStatus {
  readonly name: string
  /** Key of system shared memory. */
  readonly key?: string
  /** Offset within system shared memory, in bytes. */
  readonly offset?: number
  /** Id of the GPU, for memory of a GPU. */
  readonly device_id?: number
  readonly byte_size: number
}

/** The calls about shared memory, of both protocols: only for those who may change the server. */
export class RegionCalls {
  readonly #control: ControlCalls

  constructor(control: ControlCalls) {
    this.#control = control
  }

  /** Checks that a caller may change the server. @throws ServeError for a caller that may not. */
  check(caller: Caller): void {
    this.#control.checkCaller({ ...caller, action: 'shared memory' })
  }

  /** Lists the registered regions of a kind. @param name - '' for all. @throws ServeError NOT_FOUND */
  status(kind: RegionKind, name: string, caller: Caller): readonly RegionStatus[] {
    this.check(caller)
    const { regions = new SharedRegions() } = caller.backend
    return regions.status(name, kind).map(toStatus)
  }

  /** Registers a region of system shared memory. @throws ServeError with Triton's text. */
  async register(request: SystemRequest, caller: Caller): Promise<void> {
    await this.#change(caller, (regions) => regions.register(request))
  }

  /** Registers a region of GPU memory. @throws ServeError with Triton's text, always where there are no GPUs. */
  async registerCuda(request: CudaRequest, caller: Caller): Promise<void> {
    await this.#change(caller, (regions) => regions.registerCuda(request))
  }

  /** Forgets a region. @param name - '' for all. @throws ServeError if requests use a region. */
  async unregister(kind: RegionKind, name: string, caller: Caller): Promise<void> {
    await this.#change(caller, (regions) => regions.unregister(name, kind))
  }

  #change(caller: Caller, change: (regions: SharedRegions) => void | Promise<void>): Promise<void> {
    return this.#control.run({ ...caller, action: 'shared memory' }, () => {
      const { regions } = caller.backend
      if (regions === undefined) throw isDisabled()
      return change(regions)
    })
  }
}

function toStatus(request: Region['request']): RegionStatus {
  const { name, byteSize: byte_size } = request
  if ('key' in request) return { name, key: request.key, offset: request.offset, byte_size }
  return { name, device_id: request.deviceId, byte_size }
}

function isDisabled(): ServeError {
  return new ServeError(
    'UNSUPPORTED',
    "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable.",
  )
}
