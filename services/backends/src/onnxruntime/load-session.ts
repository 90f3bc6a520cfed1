import type { MessagePort } from 'node:worker_threads'
import { createOrtSession, type OrtSession } from './ort-binding.ts'
import type { SessionPlan, SessionStarted } from './session-contract.ts'

/** Makes a session on this thread, and says so. @returns undefined, and closes the port, if that fails. */
export function loadSession(port: MessagePort, plan: SessionPlan): OrtSession | undefined {
  const say = (started: SessionStarted): void => port.postMessage(started, [])
  try {
    const session = createOrtSession()
    session.loadModel(plan.modelFile, plan.options)
    say({})
    return session
  } catch (error) {
    say({ problem: textOf(error) })
    port.close()
    return undefined
  }
}

/** The runtime's text. */
export function textOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).trim()
}
