import { ServeError } from '@tutti/errors'
import type { ControlCall, ControlCalls } from '../request/control-calls.ts'
import type { RegionRequest } from './region.ts'
import type { SharedRegions } from './shared-regions.ts'

export type RegionKind = 'system' | 'cuda'

type Caller = Omit<ControlCall, 'action' | 'model'>

/**
 * The calls about shared memory, of both protocols: only for those who may change the server. Memory of GPUs is answered as by a
 * tritonserver that has none.
 */
export class RegionCalls {
  readonly #control: ControlCalls

  constructor(control: ControlCalls) {
    this.#control = control
  }

  /** @throws ServeError for a caller that may not change the server. */
  check(caller: Caller): void {
    this.#control.checkCaller({ ...caller, action: 'shared memory' })
  }

  /** @param name - '' for all. @throws ServeError NOT_FOUND */
  status(kind: RegionKind, name: string, caller: Caller): readonly RegionRequest[] {
    this.check(caller)
    const { regions } = caller.backend
    if (kind === 'system' && regions !== undefined) return regions.status(name)
    if (name === '') return []
    throw new ServeError('NOT_FOUND', `Unable to find ${kind} shared memory region: '${name}'`)
  }

  /** @throws ServeError with Triton's text. */
  async register(request: RegionRequest, caller: Caller): Promise<void> {
    await this.#change(caller, (regions) => regions.register(request))
  }

  /** @throws ServeError always. */
  async registerCuda(name: string, caller: Caller): Promise<void> {
    await this.#change(caller, (regions) => {
      regions.refuseTaken(name)
      const text = 'failed to register shared memory region: invalid args'
      throw new ServeError('INVALID_PARAMETER', text)
    })
  }

  /** @param name - '' for all. @throws ServeError if requests use a region. */
  async unregister(kind: RegionKind, name: string, caller: Caller): Promise<void> {
    await this.#change(caller, (regions) => {
      if (kind === 'system') regions.unregister(name)
    })
  }

  #change(caller: Caller, change: (regions: SharedRegions) => void): Promise<void> {
    return this.#control.run({ ...caller, action: 'shared memory' }, () => {
      const { regions } = caller.backend
      if (regions === undefined) throw isDisabled()
      change(regions)
    })
  }
}

function isDisabled(): ServeError {
  return new ServeError(
    'UNSUPPORTED',
    "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable.",
  )
}
