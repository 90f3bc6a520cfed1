import { readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import type { MessagePort } from 'node:worker_threads'
import { openInputs, toDefaults } from '../onnx/optional-inputs.ts'
import {
  createOrtSession,
  type OrtSession,
  type OrtSessionOptions,
  type OrtValue,
} from './ort-binding.ts'
import { ORT_DATATYPES } from './ort-datatype.ts'
import type { SessionPlan, SessionPort, SessionStarted } from './session-contract.ts'

/** A session, and the values of the optional inputs that a request leaves out. */
export interface LoadedSession {
  readonly session: OrtSession
  readonly defaults: Readonly<Record<string, OrtValue>>
}

/** Makes a session on this thread, and says so. @returns undefined, and closes the port, if that fails. */
export function loadSession(port: MessagePort, plan: SessionPlan): LoadedSession | undefined {
  const say = (started: SessionStarted): void => port.postMessage(started, [])
  try {
    const loaded = load(plan)
    say({})
    return loaded
  } catch (error) {
    say({ problem: textOf(error) })
    port.close()
    return undefined
  }
}

function load(plan: SessionPlan): LoadedSession {
  const optional = plan.inputs.filter((input) => input.optional)
  if (optional.length > 0) return loadOpened(plan, optional)
  const session = createOrtSession()
  session.loadModel(plan.modelFile, plan.options)
  return { session, defaults: {} }
}

/** Loads a model with optional inputs, from memory instead of by path, and asks the runtime for their defaults. */
function loadOpened(
  { modelFile, options }: SessionPlan,
  optional: readonly SessionPort[],
): LoadedSession {
  const folder = 'session.model_external_initializers_file_folder_path'
  const extra = { [folder]: dirname(modelFile), ...options.extra }
  const start = (bytes: Uint8Array<ArrayBuffer>, more: Partial<OrtSessionOptions>): OrtSession => {
    const session = createOrtSession()
    session.loadModel(bytes.buffer, 0, bytes.byteLength, { ...options, ...more, extra })
    return session
  }
  const names = new Set(optional.map(({ name }) => name))
  const model = readFileSync(modelFile)
  const source = start(toDefaults(model, names), { executionProviders: [{ name: 'cpu' }] })
  const values = source.run({}, Object.fromEntries([...names].map((name) => [name, null])), {})
  const defaults = Object.fromEntries(
    optional.map((port) => [port.name, toFed(port, values[port.name])]),
  )
  source.dispose()
  return { session: start(openInputs(model, names), {}), defaults }
}

/** A copy of a result, as it can be fed. */
function toFed({ name, datatype }: SessionPort, value: OrtValue | undefined): OrtValue {
  const { type, dims, data } = value ?? { type: 'none', dims: [], data: [] }
  const want = ORT_DATATYPES[datatype]?.name
  if (type !== want) throw new Error(`default of input '${name}': type ${type}, want ${want}`)
  const copy = data.slice()
  // The binding gives FP16 as a Float16Array, and misreads one that it is fed.
  const isFp16 = type === 'float16' && ArrayBuffer.isView(copy)
  return { type, dims, data: isFp16 ? new Uint16Array(copy.buffer) : copy, location: 'cpu' }
}

/** The runtime's text. */
export function textOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).trim()
}
