import { createRequire } from 'node:module'
import { ServeError } from '@tutti/errors'
import type koffiModule from 'koffi'
import { repairDivisions } from './division-trap.ts'
import { findOrtLibrary } from './find-ort-library.ts'
import { THREAD_CALLS } from './thread-mailbox.ts'

/*
 * The one file that knows where ONNX Runtime's library is and how its C API is called. Addresses are plain numbers, and nothing
 * here is safe from wrong ones: `OrtSession` is the only user, and checks all that comes from requests.
 *
 * The C API is a table of functions to which later versions only append (onnxruntime_c_api.h, OrtApi).
 */

/** Address in native memory; 0 for none. Out parameters are BigUint64Arrays, so addresses from them are bigint. */
export type Address = number | bigint
/** An OrtStatus: 0 for success, else to be read with `readStatus`. */
type Status = number
/** Memory that is alive during the call; the runtime writes addresses and sizes to it. */
type Out = BigUint64Array

/** Arguments of a run: addresses and counts of the names and values. */
export type RunArguments = readonly [
  session: Address,
  options: Address,
  inputNames: Address,
  inputs: Address,
  inputCount: number,
  outputNames: Address,
  outputCount: number,
  outputs: Address,
]

/** The functions of OrtApi that are used, and memcpy. */
export interface OrtApi {
  readonly getErrorCode: (status: Status) => number
  readonly getErrorMessage: (status: Status) => string
  readonly createEnv: (logSeverity: number, name: string, env: Out) => Status
  readonly createSessionOptions: (options: Out) => Status
  readonly setExecutionMode: (options: Address, mode: number) => Status
  readonly enableMemPattern: (options: Address) => Status
  readonly disableMemPattern: (options: Address) => Status
  readonly enableCpuMemArena: (options: Address) => Status
  readonly disableCpuMemArena: (options: Address) => Status
  readonly setLogSeverity: (options: Address, severity: number) => Status
  readonly setGraphOptimization: (options: Address, level: number) => Status
  readonly setIntraOpThreads: (options: Address, threads: number) => Status
  readonly setInterOpThreads: (options: Address, threads: number) => Status
  readonly addConfigEntry: (options: Address, key: string, value: string) => Status
  readonly createCudaOptions: (options: Out) => Status
  readonly updateCudaOptions: (
    options: Address,
    keys: string[],
    values: string[],
    count: number,
  ) => Status
  readonly appendCuda: (sessionOptions: Address, options: Address) => Status
  readonly createTensorrtOptions: (options: Out) => Status
  readonly updateTensorrtOptions: (
    options: Address,
    keys: string[],
    values: string[],
    count: number,
  ) => Status
  readonly appendTensorrt: (sessionOptions: Address, options: Address) => Status
  readonly releaseTensorrtOptions: (options: Address) => void
  /** Appends a provider that the runtime knows by its name. */
  readonly appendProvider: (
    sessionOptions: Address,
    name: string,
    keys: string[],
    values: string[],
    count: number,
  ) => Status
  readonly createRunOptions: (options: Out) => Status
  readonly setTerminate: (runOptions: Address) => Status
  readonly unsetTerminate: (runOptions: Address) => Status
  readonly addRunConfigEntry: (runOptions: Address, key: string, value: string) => Status
  readonly createCpuMemoryInfo: (allocator: number, memory: number, info: Out) => Status
  readonly getDefaultAllocator: (allocator: Out) => Status
  readonly createTensorOver: (
    info: Address,
    data: Uint8Array,
    size: number,
    dims: BigInt64Array,
    rank: number,
    type: number,
    value: Out,
  ) => Status
  readonly createTensor: (
    allocator: Address,
    dims: BigInt64Array,
    rank: number,
    type: number,
    value: Out,
  ) => Status
  readonly fillStringTensor: (value: Address, texts: BigUint64Array, count: number) => Status
  readonly resizeStringElement: (value: Address, index: number, size: number, buffer: Out) => Status
  readonly getStringBytes: (value: Address, size: Out) => Status
  readonly getStrings: (
    value: Address,
    text: Uint8Array,
    size: number,
    offsets: BigUint64Array,
    count: number,
  ) => Status
  readonly getTensorData: (value: Address, data: Out) => Status
  /**
   * Reads type and shape of a value. It writes 4 bytes of `type`. `dims` gets the address of `rank` int64 that belong to the
   * value, or 0.
   */
  readonly getTypeAndShape: (value: Address, type: Out, dims: Out, rank: Out) => Status
  /** Runs a session. Blocks the calling thread. */
  readonly run: (...run: RunArguments) => Status
  readonly releaseStatus: (status: Status) => void
  readonly releaseValue: (value: Address) => void
  readonly releaseRunOptions: (options: Address) => void
  readonly releaseSessionOptions: (options: Address) => void
  readonly releaseCudaOptions: (options: Address) => void
  readonly copyFrom: (target: ArrayBufferView, source: Address, size: number) => void
  readonly copyTo: (target: Address, source: Uint8Array, size: number) => void
}

/** ONNX Runtime's library, loaded. */
export interface OrtLibrary {
  readonly path: string
  /** Version of the runtime, e.g. 1.30.0. */
  readonly version: string
  readonly api: OrtApi
  /** The OrtEnv of this process. */
  readonly env: Address
  /** OrtMemoryInfo of memory that belongs to us. */
  readonly cpuMemory: Address
  readonly allocator: Address
  /** Addresses of the functions that run threads call, in the order of THREAD_CALLS. */
  readonly threadFunctions: readonly bigint[]
  /** Finds the address of memory. The memory must stay referenced for as long as the address is used. */
  readonly addressOf: (memory: ArrayBufferView) => number
  /** Makes a view of memory of the runtime. It is valid until the runtime frees that memory. */
  readonly view: (address: Address, size: number) => ArrayBuffer
}

const A = 'uintptr_t'
const OUT = 'void*'
const [TEXT, SIZE, INT] = ['str', 'size_t', 'int'] as const

/** Place in the table, result, parameters. */
const FUNCTIONS: Readonly<Record<string, readonly [number, string, ...string[]]>> = {
  getErrorCode: [1, INT, A],
  getErrorMessage: [2, TEXT, A],
  createEnv: [3, A, INT, TEXT, OUT],
  run: [9, A, A, A, A, A, SIZE, A, SIZE, A],
  createSessionOptions: [10, A, OUT],
  setExecutionMode: [13, A, A, INT],
  enableMemPattern: [16, A, A],
  disableMemPattern: [17, A, A],
  enableCpuMemArena: [18, A, A],
  disableCpuMemArena: [19, A, A],
  setLogSeverity: [22, A, A, INT],
  setGraphOptimization: [23, A, A, INT],
  setIntraOpThreads: [24, A, A, INT],
  setInterOpThreads: [25, A, A, INT],
  createRunOptions: [39, A, OUT],
  setTerminate: [46, A, A],
  unsetTerminate: [47, A, A],
  createTensor: [48, A, A, OUT, SIZE, INT, OUT],
  createTensorOver: [49, A, A, OUT, SIZE, OUT, SIZE, INT, OUT],
  getTensorData: [51, A, A, OUT],
  fillStringTensor: [52, A, A, OUT, SIZE],
  getStringBytes: [53, A, A, OUT],
  getStrings: [54, A, A, OUT, SIZE, OUT, SIZE],
  createCpuMemoryInfo: [69, A, INT, INT, OUT],
  getDefaultAllocator: [78, A, OUT],
  releaseStatus: [93, 'void', A],
  releaseValue: [96, 'void', A],
  releaseRunOptions: [97, 'void', A],
  releaseSessionOptions: [100, 'void', A],
  addConfigEntry: [130, A, A, TEXT, TEXT],
  addRunConfigEntry: [165, A, A, TEXT, TEXT],
  appendTensorrt: [170, A, A, A],
  createTensorrtOptions: [171, A, OUT],
  updateTensorrtOptions: [172, A, A, 'const char **', 'const char **', SIZE],
  releaseTensorrtOptions: [174, 'void', A],
  appendCuda: [204, A, A, A],
  createCudaOptions: [205, A, OUT],
  updateCudaOptions: [206, A, A, 'const char **', 'const char **', SIZE],
  releaseCudaOptions: [208, 'void', A],
  appendProvider: [216, A, A, TEXT, 'const char **', 'const char **', SIZE],
  resizeStringElement: [252, A, A, SIZE, SIZE, OUT],
  getTypeAndShape: [414, A, A, OUT, OUT, OUT],
}

/** The version of the API that is asked for: the one that appended the last function that is used. */
const API_VERSION = 24
const TABLE_SIZE = 415
const LOG_FATAL = 4
const ARENA_ALLOCATOR = 1
const DEFAULT_MEMORY = 0

const loaded = new Map<string, OrtLibrary>()

/**
 * Loads ONNX Runtime's library, once for each path in the life of this thread.
 *
 * @param path - path of another library than the package's.
 * @throws ServeError MODEL_LOAD_FAILED that says what does not load.
 */
export function loadOrtLibrary(path = findOrtLibrary()): OrtLibrary {
  const library = loaded.get(path) ?? bindLibrary(loadKoffi(), path)
  loaded.set(path, library)
  return library
}

/** Reads code and text of an OrtStatus that is not 0, and releases the status. */
export function readStatus(api: OrtApi, status: Status): { code: number; text: string } {
  const failure = { code: api.getErrorCode(status), text: api.getErrorMessage(status).trim() }
  api.releaseStatus(status)
  return failure
}

function loadKoffi(): typeof koffiModule {
  try {
    return createRequire(import.meta.url)('koffi')
  } catch (error) {
    throw cannotLoad('the npm package koffi', error)
  }
}

function cannotLoad(what: string, error: unknown): ServeError {
  const { message } = ServeError.from(error)
  const text = `ONNX Runtime cannot be used: ${what} does not load: ${message}`
  return new ServeError('MODEL_LOAD_FAILED', text, { cause: error })
}

/** Libraries in use: koffi unloads one that is no longer referenced. */
const HELD: unknown[] = []

function bindLibrary(koffi: typeof koffiModule, path: string): OrtLibrary {
  // Or the runtime stores a device id in the user's home, writes to /tmp, and reports its use to Microsoft.
  // oxlint-disable-next-line node/no-process-env -- its library reads it there
  process.env['ORT_DISABLE_TELEMETRY'] ??= '1'
  const { table, version } = openTable(koffi, path)
  repairDivisions(koffi, path)
  const entries = Object.entries(FUNCTIONS).map(([name, [place, result, ...parameters]]) => {
    return [name, koffi.decode(table[place], koffi.proto(result, parameters))]
  })
  const libC = koffi.load(null)
  HELD.push(libC)
  const copyFrom = libC.func('memcpy', 'void', ['void*', A, SIZE])
  const copyTo = libC.func('memcpy', 'void', [A, 'const void*', SIZE])
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- FUNCTIONS says what they are
  const api = { ...Object.fromEntries(entries), copyFrom, copyTo } as unknown as OrtApi
  const out = new BigUint64Array(1)
  const made = (status: Status): bigint => {
    if (status !== 0) throw cannotLoad(path, new Error(readStatus(api, status).text))
    return out[0] ?? 0n
  }
  return {
    path,
    version,
    api,
    // Fatal only: what fails comes back as a status, and the runtime's own lines are not JSON.
    env: made(api.createEnv(LOG_FATAL, 'tutti', out)),
    cpuMemory: made(api.createCpuMemoryInfo(ARENA_ALLOCATOR, DEFAULT_MEMORY, out)),
    allocator: made(api.getDefaultAllocator(out)),
    threadFunctions: THREAD_CALLS.map(({ place }) => table[place] ?? 0n),
    addressOf: (memory) => Number(koffi.address(memory)),
    view: (address, size) => koffi.view(address, size),
  }
}

interface ApiTable {
  readonly table: readonly bigint[]
  /** Version of the runtime. */
  readonly version: string
}

function openTable(koffi: typeof koffiModule, path: string): ApiTable {
  try {
    const library = koffi.load(path)
    HELD.push(library)
    const base: unknown = library.func('void* OrtGetApiBase()')()
    const [getApi, getVersion]: readonly unknown[] = koffi.decode(base, koffi.array('void*', 2))
    const version: string = koffi.call(getVersion, koffi.proto('str', []))
    const api: unknown = koffi.call(getApi, koffi.proto('void*', ['uint32_t']), API_VERSION)
    if (api === null) throw new Error(tooOld(version))
    return { table: koffi.decode(api, koffi.array('void*', TABLE_SIZE)), version }
  } catch (error) {
    throw cannotLoad(path, error)
  }
}

/** Writes that a runtime is too old. Versions of the C API are the second parts of the runtime's. */
export function tooOld(version: string): string {
  return `it is ONNX Runtime ${version}, which has no version ${API_VERSION} of the C API, want 1.${API_VERSION}.0 or newer`
}
