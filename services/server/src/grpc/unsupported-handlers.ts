import { ServeError } from '@tutti/errors'
import { unary } from './method.ts'

interface RegionRequest {
  readonly name: string
}

function refuseSharedMemory(): never {
  throw new ServeError(
    'UNSUPPORTED',
    "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable.",
  )
}

/** No region can be registered, so any that is asked for by name is unknown. */
function noRegions(kind: string) {
  return ({ name }: RegionRequest) => {
    if (name === '') return { regions: {} }
    throw new ServeError('NOT_FOUND', `Unable to find ${kind} shared memory region: '${name}'`)
  }
}

function refuse(what: string) {
  return (): never => {
    throw new ServeError('UNSUPPORTED', `${what} are not offered by this server`)
  }
}

/** The calls of Triton's that are not offered here: each says so. */
export function unsupportedHandlers() {
  return {
    SystemSharedMemoryStatus: unary(noRegions('system')),
    SystemSharedMemoryRegister: unary(refuseSharedMemory),
    SystemSharedMemoryUnregister: unary(refuseSharedMemory),
    CudaSharedMemoryStatus: unary(noRegions('cuda')),
    CudaSharedMemoryRegister: unary(refuseSharedMemory),
    CudaSharedMemoryUnregister: unary(refuseSharedMemory),
    TraceSetting: unary(refuse('trace settings')),
    LogSettings: unary(refuse('log settings')),
  }
}
