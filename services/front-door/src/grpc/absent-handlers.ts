import { ServeError } from '@tutti/errors'
import { type HandlerContext, unary } from './unary-handler.ts'

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
export function absentHandlers(context: HandlerContext) {
  return {
    SystemSharedMemoryStatus: unary(context, noRegions('system')),
    SystemSharedMemoryRegister: unary(context, refuseSharedMemory),
    SystemSharedMemoryUnregister: unary(context, refuseSharedMemory),
    CudaSharedMemoryStatus: unary(context, noRegions('cuda')),
    CudaSharedMemoryRegister: unary(context, refuseSharedMemory),
    CudaSharedMemoryUnregister: unary(context, refuseSharedMemory),
    TraceSetting: unary(context, refuse('trace settings')),
    LogSettings: unary(context, refuse('log settings')),
  }
}
