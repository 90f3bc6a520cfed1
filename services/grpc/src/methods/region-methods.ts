import { ServeError } from '@tutti/errors'
import { type ControlCalls, RegionCalls } from '@tutti/serving'
import type { RegionKind } from '@tutti/shared-memory'
import type { ServerCall } from '../call/server-call.ts'
import { type Handler, type MethodRecord, requireLive, unary } from './method.ts'

interface Named {
  readonly name: string
}

/** Counts come as texts. */
interface SystemRegister extends Named {
  readonly key: string
  readonly offset: string
  readonly byte_size: string
}

interface CudaRegister extends Named {
  readonly raw_handle: Buffer
  readonly device_id: string
  readonly byte_size: string
}

/** Builds the methods about shared memory of clients. */
export function regionMethods(control: ControlCalls): Readonly<Record<string, MethodRecord>> {
  const calls = new RegionCalls(control)
  return {
    SystemSharedMemoryStatus: checked(calls, status('system', calls)),
    SystemSharedMemoryRegister: checked(calls, async (request: SystemRegister, call) => {
      const { name, key, offset, byte_size: byteSize } = request
      const region = { name, key, offset: Number(offset), byteSize: Number(byteSize) }
      await calls.register(region, callerOf(call))
      return {}
    }),
    SystemSharedMemoryUnregister: checked(calls, unregister('system', calls)),
    CudaSharedMemoryStatus: checked(calls, status('cuda', calls)),
    CudaSharedMemoryRegister: checked(calls, async (request: CudaRegister, call) => {
      const { name, raw_handle: handle, device_id: deviceId, byte_size: byteSize } = request
      const region = { name, handle, deviceId: Number(deviceId), byteSize: Number(byteSize) }
      await calls.registerCuda(region, callerOf(call))
      return {}
    }),
    CudaSharedMemoryUnregister: checked(calls, unregister('cuda', calls)),
  }
}

function status(kind: RegionKind, calls: RegionCalls) {
  return ({ name }: Named, call: ServerCall): object => {
    const regions = calls.status(kind, name, callerOf(call))
    return { regions: Object.fromEntries(regions.map((region) => [region.name, region])) }
  }
}

function unregister(kind: RegionKind, calls: RegionCalls) {
  return async ({ name }: Named, call: ServerCall): Promise<object> => {
    await calls.unregister(kind, name, callerOf(call))
    return {}
  }
}

/** Makes the handler of a call whose message is read only from callers who may change the server. */
function checked(calls: RegionCalls, answer: Parameters<typeof unary>[0]): MethodRecord {
  const answerAll = unary(answer)
  const serve: Handler = (call, definition) => {
    try {
      requireLive(call.backend)
      calls.check(callerOf(call))
    } catch (error) {
      return call.refuse(ServeError.from(error))
    }
    answerAll(call, definition)
  }
  return { group: 'shared-memory', admission: 'control', serve }
}

function callerOf({ backend, headers, socket }: ServerCall) {
  return { backend, headers, socket }
}
