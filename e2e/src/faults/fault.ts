import type { System, Way } from './system.ts'

/** Harm that is done to a system, and what its clients were promised meanwhile. */
export interface Fault {
  /** A row of docs/reliability.md. */
  readonly name: string
  readonly ways: readonly Way[]
  /** Code and reason of each error that a client may get. */
  readonly errors: readonly string[]
  /** The same with direct connections between routers and steps, where these make a difference. */
  readonly directErrors?: readonly string[]
  /** Every request has its outcome within that time. Far more than it takes: the machine may be busy. */
  readonly withinMs: number
  /** Deadline of each request, where the client's own deadline is what ends it: nothing else does. */
  readonly timeoutMs?: number
  /** From the strike to its undoing. */
  readonly heldMs: number
  /** True if `npm test` runs it; the others run in the night. */
  readonly isQuick?: boolean
  /** Why it cannot run here, if so. */
  readonly skip?: string | false
  /** Before the clients ask. */
  prepare?(system: System): Promise<unknown>
  strike(system: System): Promise<unknown>
  undo?(system: System): Promise<unknown>
  /** After the clients have gone. */
  cleanUp?(system: System): Promise<unknown>
}

/** Finds the errors that clients of the system may get. */
export function errorsIn({ direct }: System, fault: Fault): readonly string[] {
  return (direct === 'off' ? undefined : fault.directErrors) ?? fault.errors
}

/** A request that its step may or may not have executed, and one for which there is no step. */
export const STEP_ERRORS = ['UNAVAILABLE STEP_LOST', 'UNAVAILABLE STEP_UNAVAILABLE']
/** Errors that our client makes of a connection that breaks or is refused. */
export const CONNECTION_ERRORS = ['UNAVAILABLE SERVER_NOT_READY']
/** The client's own deadline. */
export const DEADLINE_ERRORS = ['DEADLINE_EXCEEDED DEADLINE_EXCEEDED']

export const BOTH_WAYS: Fault['ways'] = ['one process', 'processes']
export const PROCESSES: Fault['ways'] = ['processes']
/** A fault of the broker, which direct connections do without. */
export const AT_BROKER = { ways: PROCESSES, errors: STEP_ERRORS, directErrors: [] } as const
export const ONE_PROCESS: Fault['ways'] = ['one process']
