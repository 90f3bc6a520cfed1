import { ServeError } from '@tutti/errors'
import { CUDA_LIBRARY, loadCudaDriver } from './cuda-driver.ts'
import { bytesByValue, callNative } from './native-library.ts'

/** CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS, as cudaIpcMemLazyEnablePeerAccess: the only one there is. */
const LAZY_PEER_ACCESS = 1
/** Bytes of a CUipcMemHandle. */
const HANDLE_BYTES = 64
/** The stream that copies without a stream of their own go through. */
const DEFAULT_STREAM = 0

/** Memory of a GPU that another process has exported, opened in this one. */
interface ImportedMemory {
  readonly byteSize: number
  read(begin: number, bytes: Uint8Array): void
  write(begin: number, bytes: Uint8Array): void
  close(): void
}

/**
 * Opens GPU memory that other processes of this machine have exported. The first `open` loads the driver's library. A device's
 * primary context, which engines in this process share, is kept once it is used.
 *
 * A context is current to a thread, so all calls that need one are made on this thread.
 */
export class CudaImports {
  readonly #library: string
  #driver: Driver | undefined
  readonly #contexts = new Map<number, Promise<bigint>>()

  /** @param library - a name that the loader finds, or a path. */
  constructor(library = CUDA_LIBRARY) {
    this.#library = library
  }

  /**
   * Opens exported memory. The caller closes it.
   *
   * @param handle - a CUipcMemHandle, of 64 bytes; copied.
   * @returns undefined where there is no driver.
   * @throws ServeError DEVICE_UNAVAILABLE with CUDA's words. The copies throw it too, once the device is lost.
   */
  async open(handle: Uint8Array, deviceId: number): Promise<ImportedMemory | undefined> {
    this.#driver ??= loadDriver(this.#library)
    const driver = this.#driver
    return driver && importMemory(driver, await this.#contextOf(driver, deviceId), handle)
  }

  #contextOf(driver: Driver, deviceId: number): Promise<bigint> {
    const found = this.#contexts.get(deviceId)
    if (found !== undefined) return found
    const context = retainContext(driver, deviceId)
    this.#contexts.set(deviceId, context)
    context.catch(() => this.#contexts.delete(deviceId))
    return context
  }
}

type Driver = NonNullable<ReturnType<typeof loadDriver>>

function loadDriver(name: string) {
  try {
    const { library, check } = loadCudaDriver(name)
    return {
      check,
      init: library.func('int cuInit(unsigned int)'),
      getDevice: library.func('int cuDeviceGet(void*, int)'),
      retain: library.func('int cuDevicePrimaryCtxRetain(void*, int)'),
      setCurrent: library.func('int cuCtxSetCurrent(uintptr_t)'),
      openHandle: library.func('cuIpcOpenMemHandle_v2', 'int', [
        'void*',
        bytesByValue(HANDLE_BYTES),
        'unsigned int',
      ]),
      closeHandle: library.func('int cuIpcCloseMemHandle(uint64_t)'),
      getRange: library.func('int cuMemGetAddressRange_v2(void*, void*, uint64_t)'),
      toHost: library.func('int cuMemcpyDtoH_v2(void*, uint64_t, size_t)'),
      toDevice: library.func('int cuMemcpyHtoD_v2(uint64_t, void*, size_t)'),
      synchronize: library.func('int cuStreamSynchronize(uintptr_t)'),
    }
  } catch {
    // A machine without a GPU has no library.
    return undefined
  }
}

/** Retains the context of a device on threads of koffi, because both calls may take seconds. */
async function retainContext(driver: Driver, deviceId: number): Promise<bigint> {
  const { check } = driver
  check('cuInit', await callNative(driver.init, 0))
  const device = new Int32Array(1)
  check('cuDeviceGet', await callNative(driver.getDevice, device, deviceId))
  const context = new BigUint64Array(1)
  check('cuDevicePrimaryCtxRetain', await callNative(driver.retain, context, device[0]))
  return context[0] ?? 0n
}

function importMemory(driver: Driver, context: bigint, handle: Uint8Array): ImportedMemory {
  const { check } = driver
  const enter = (): void => check('cuCtxSetCurrent', driver.setCurrent(context))
  enter()
  const opened = new BigUint64Array(1)
  const byValue = { bytes: handle }
  check('cuIpcOpenMemHandle', driver.openHandle(opened, byValue, LAZY_PEER_ACCESS))
  const [pointer = 0n] = opened
  const close = (): void => {
    enter()
    check('cuIpcCloseMemHandle', driver.closeHandle(pointer))
  }
  const [base, size] = [new BigUint64Array(1), new BigUint64Array(1)]
  try {
    check('cuMemGetAddressRange', driver.getRange(base, size, pointer))
  } catch (error) {
    close()
    throw error
  }
  const byteSize = Number((base[0] ?? 0n) + (size[0] ?? 0n) - pointer)
  const addressOf = (begin: number, { byteLength }: Uint8Array): bigint => {
    if (begin + byteLength <= byteSize) return pointer + BigInt(begin)
    throw new ServeError('INTERNAL', `bug: byte ${begin + byteLength} of ${byteSize} of a GPU`)
  }
  return {
    byteSize,
    read: (begin, bytes) => {
      enter()
      const from = addressOf(begin, bytes)
      check('cuMemcpyDtoH', driver.toHost(bytes, from, bytes.byteLength))
    },
    write: (begin, bytes) => {
      enter()
      const to = addressOf(begin, bytes)
      check('cuMemcpyHtoD', driver.toDevice(to, bytes, bytes.byteLength))
      // It returns once the bytes are read; another process may look for them before they are written.
      check('cuStreamSynchronize', driver.synchronize(DEFAULT_STREAM))
    },
    close,
  }
}
