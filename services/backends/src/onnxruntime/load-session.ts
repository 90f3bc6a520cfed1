import { ServeError } from '@tutti/errors'
import type { Placement } from '../placement.ts'
import { type Accelerators, requireProvider } from './accelerators.ts'
import { OrtInstance } from './onnx-model.ts'
import { type Address, type OrtLibrary, readStatus } from './ort-library.ts'
import { OrtSession } from './ort-session.ts'
import { InstanceThread, type RunThreads, type ThreadCall } from './run-threads.ts'
import type { ExecutionProvider, OrtSessionOptions } from './session-contract.ts'
import { toExecutionProviders } from './session-options.ts'
import type { SessionParts } from './session-parts.ts'
import { CREATE_SESSION, CREATE_SESSION_OF_BYTES, RELEASE_SESSION } from './thread-mailbox.ts'

const GRAPH_LEVELS = { disabled: 0, basic: 1, extended: 2, all: 99 } as const
const EXECUTION_MODES = { sequential: 0, parallel: 1 } as const

/** Options for the start of a model's instances. */
export interface ModelLoading extends Omit<SessionParts, 'session' | 'hasArena'> {
  readonly model: string
  readonly placements: readonly Placement[]
  readonly threads: RunThreads
  /** Absolute path of the .onnx file, beside which external data is found, or the bytes of a model without. */
  readonly file: string | Uint8Array
  /** Session options without the execution provider, which belongs to the instance. */
  readonly options: Omit<OrtSessionOptions, 'executionProviders'>
  readonly accelerators: Accelerators
}

/**
 * Makes an instance for each placement. Instances on one device share a session.
 *
 * @returns the instances in the order of their placements. The caller calls `release`, which frees the sessions, once no instance
 * runs.
 * @throws ServeError MODEL_LOAD_FAILED with the runtime's text.
 */
export async function startOrtInstances(o: ModelLoading) {
  const { placements, threads } = o
  const sessions = new Map<string, OrtSession>()
  threads.resize(placements.length)
  const release = async (): Promise<void> => {
    try {
      for (const session of sessions.values()) {
        session.dispose()
        const args = [session.address]
        await callOnThread(threads, { function: RELEASE_SESSION, args, held: undefined })
      }
    } finally {
      threads.resize(-placements.length)
    }
  }
  try {
    const instances: OrtInstance[] = []
    for (const placement of placements) {
      const device = placement.kind === 'GPU' ? `cuda:${placement.deviceId}` : 'cpu'
      const session = sessions.get(device) ?? (await createSession(o, placement))
      sessions.set(device, session)
      instances.push(new OrtInstance(session, new InstanceThread(session, threads)))
    }
    return { instances, release }
  } catch (error) {
    await release()
    throw error
  }
}

async function createSession(o: ModelLoading, placement: Placement): Promise<OrtSession> {
  const isOnGpu = placement.kind === 'GPU'
  // The runtime's error for libraries that cannot be loaded names none of them.
  const where = isOnGpu
    ? `on CUDA device ${placement.deviceId}, by a provider that needs CUDA 13, so a driver of 580 or newer, and cuDNN 9: `
    : ''
  const executionProviders = toExecutionProviders(placement, o.accelerators)
  const accelerators = executionProviders.filter(({ options }) => options !== undefined)
  for (const one of accelerators) requireProvider(o.model, one, o.library)
  try {
    const session = await createNative(o, { ...o.options, executionProviders })
    const hasArena = o.options.enableCpuMemArena
    const mayRunHere = o.mayRunHere && !isOnGpu && accelerators.length === 0
    return new OrtSession({ ...o, session, hasArena, mayRunHere })
  } catch (error) {
    throw ServeError.from(error).withPrefix(`failed to load model '${o.model}': ${where}`)
  }
}

/** @returns the address of an OrtSession, which is made on a run thread: it may take seconds. */
async function createNative(o: ModelLoading, options: OrtSessionOptions): Promise<Address> {
  const { library, file } = o
  const native = createOptions(library, options)
  const session = new BigUint64Array(1)
  const sessionAt = library.addressOf(session)
  const encoding = process.platform === 'win32' ? 'utf16le' : 'utf8'
  const model = typeof file === 'string' ? Buffer.from(`${file}\0`, encoding) : file
  const modelAt = library.addressOf(model)
  const held = [model, session]
  try {
    const call =
      typeof file === 'string'
        ? { function: CREATE_SESSION, args: [library.env, modelAt, native, sessionAt] }
        : {
            function: CREATE_SESSION_OF_BYTES,
            args: [library.env, modelAt, file.byteLength, native, sessionAt],
          }
    check(library, await callOnThread(o.threads, { ...call, held }))
  } finally {
    library.api.releaseSessionOptions(native)
  }
  return session[0] ?? 0n
}

function callOnThread(threads: RunThreads, call: Omit<ThreadCall, 'done'>): Promise<number> {
  const thread = threads.take()
  return new Promise((resolve, reject) => {
    const done = (result: number | ServeError): void => {
      threads.give(thread)
      if (result instanceof ServeError) reject(result)
      else resolve(result)
    }
    thread.post({ ...call, done })
  })
}

/** @throws ServeError MODEL_LOAD_FAILED with the runtime's text. */
function check({ api }: OrtLibrary, status: number): void {
  if (status !== 0) throw new ServeError('MODEL_LOAD_FAILED', readStatus(api, status).text)
}

function createOptions(library: OrtLibrary, o: OrtSessionOptions): Address {
  const { api } = library
  const out = new BigUint64Array(1)
  check(library, api.createSessionOptions(out))
  const options = out[0] ?? 0n
  try {
    check(library, api.setGraphOptimization(options, GRAPH_LEVELS[o.graphOptimizationLevel]))
    check(library, api.setIntraOpThreads(options, o.intraOpNumThreads))
    check(library, api.setInterOpThreads(options, o.interOpNumThreads))
    check(library, api.setExecutionMode(options, EXECUTION_MODES[o.executionMode]))
    check(library, api.setLogSeverity(options, o.logSeverityLevel))
    const { enableCpuMemArena: hasArena, enableMemPattern: hasPattern } = o
    check(library, hasArena ? api.enableCpuMemArena(options) : api.disableCpuMemArena(options))
    check(library, hasPattern ? api.enableMemPattern(options) : api.disableMemPattern(options))
    for (const [key, value] of Object.entries(o.extra)) {
      check(library, api.addConfigEntry(options, key, value))
    }
    for (const provider of o.executionProviders) appendProvider(library, options, provider)
    return options
  } catch (error) {
    api.releaseSessionOptions(options)
    throw error
  }
}

function appendProvider(library: OrtLibrary, options: Address, provider: ExecutionProvider): void {
  const { name, deviceId = 0 } = provider
  if (name === 'cuda') appendCuda(library, options, deviceId)
  if (provider.options === undefined) return
  try {
    if (name === 'tensorrt') appendTensorrt(library, options, { ...provider, deviceId })
    else appendOpenvino(library, options, provider.options)
  } catch (error) {
    // The runtime's error names the file that cannot be loaded.
    const values = Object.entries(provider.options).map(([key, value]) => `${key}=${value}`)
    const suffix = values.length === 0 ? '' : ` (${values.join(', ')})`
    const prefix = `by accelerator "${name}" of ONNX Runtime ${library.version}${suffix}: `
    throw ServeError.from(error).withPrefix(prefix)
  }
}

/** Operators that CUDA lacks fall to the CPU, which every session has. */
function appendCuda(library: OrtLibrary, options: Address, deviceId: number): void {
  const { api } = library
  const out = new BigUint64Array(1)
  check(library, api.createCudaOptions(out))
  const cuda = out[0] ?? 0n
  try {
    check(library, api.updateCudaOptions(cuda, ['device_id'], [String(deviceId)], 1))
    check(library, api.appendCuda(options, cuda))
  } finally {
    api.releaseCudaOptions(cuda)
  }
}

function appendTensorrt(
  library: OrtLibrary,
  session: Address,
  { deviceId, options = {} }: ExecutionProvider,
): void {
  const { api } = library
  const out = new BigUint64Array(1)
  check(library, api.createTensorrtOptions(out))
  const tensorrt = out[0] ?? 0n
  try {
    const all = Object.entries({ device_id: String(deviceId), ...options })
    check(library, api.updateTensorrtOptions(tensorrt, ...toLists(all)))
    check(library, api.appendTensorrt(session, tensorrt))
  } finally {
    api.releaseTensorrtOptions(tensorrt)
  }
}

function appendOpenvino(
  library: OrtLibrary,
  session: Address,
  options: Readonly<Record<string, string>>,
): void {
  const lists = toLists(Object.entries(options))
  check(library, library.api.appendProvider(session, 'OpenVINO', ...lists))
}

function toLists(entries: readonly (readonly [string, string])[]): [string[], string[], number] {
  return [entries.map(([name]) => name), entries.map(([, value]) => value), entries.length]
}
