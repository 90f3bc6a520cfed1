import { readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import type { MessagePort } from 'node:worker_threads'
import { type DefaultTensor, openInputs } from '../onnx/optional-inputs.ts'
import { createOrtSession, type OrtSession } from './ort-binding.ts'
import type { SessionPlan, SessionStarted } from './session-contract.ts'

/** A session, and the values of the optional inputs that a request leaves out. */
export interface LoadedSession {
  readonly session: OrtSession
  readonly defaults: readonly DefaultTensor[]
}

/** Makes a session on this thread, and says so. @returns undefined, and closes the port, if that fails. */
export function loadSession(port: MessagePort, plan: SessionPlan): LoadedSession | undefined {
  const say = (started: SessionStarted): void => port.postMessage(started, [])
  try {
    const loaded = load(plan)
    const { outputMetadata } = loaded.session
    say({ ready: true, outputs: outputMetadata.map(({ name, shape }) => ({ name, shape })) })
    return loaded
  } catch (error) {
    say({ ready: false, problem: textOf(error) })
    port.close()
    return undefined
  }
}

function load({ modelFile, options, optionalInputs }: SessionPlan): LoadedSession {
  const session = createOrtSession()
  if (optionalInputs.length === 0) {
    session.loadModel(modelFile, options)
    return { session, defaults: [] }
  }
  // With its optional inputs opened the model is loaded from memory instead of by path.
  const { model, defaults } = openInputs(readFileSync(modelFile), new Set(optionalInputs))
  const folder = 'session.model_external_initializers_file_folder_path'
  const extra = { [folder]: dirname(modelFile), ...options.extra }
  session.loadModel(model.buffer, model.byteOffset, model.byteLength, { ...options, extra })
  return { session, defaults }
}

/** The runtime's text. */
export function textOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).trim()
}
