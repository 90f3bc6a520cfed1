import { describe, type Outcome } from './asking.ts'

/** Kinds of faults of the system, and what a client may then be told: code and reason of an error. */
export const FAULT_KINDS = {
  'step killed': ['UNAVAILABLE STEP_LOST', 'UNAVAILABLE STEP_UNAVAILABLE'],
  'step held': ['UNAVAILABLE STEP_LOST', 'UNAVAILABLE STEP_UNAVAILABLE'],
  'step cut off': ['UNAVAILABLE STEP_LOST', 'UNAVAILABLE STEP_UNAVAILABLE'],
  // Another one is there before it goes, so no client may notice.
  'step replaced': [],
  // SERVER_NOT_READY is what our client makes of a connection that breaks or is refused.
  'router killed': ['UNAVAILABLE SERVER_NOT_READY'],
  'router drained': ['UNAVAILABLE SERVER_NOT_READY', 'UNAVAILABLE SERVER_STOPPING'],
  'router held': ['UNAVAILABLE STEP_LOST', 'UNAVAILABLE STEP_UNAVAILABLE'],
  'router cut off': ['UNAVAILABLE STEP_LOST', 'UNAVAILABLE STEP_UNAVAILABLE'],
  'router replaced': [],
  'broker restarted': ['UNAVAILABLE STEP_LOST', 'UNAVAILABLE STEP_UNAVAILABLE'],
  'broker held': ['UNAVAILABLE STEP_LOST', 'UNAVAILABLE STEP_UNAVAILABLE'],
} as const satisfies Readonly<Record<string, readonly string[]>>

export type FaultKind = keyof typeof FAULT_KINDS

/** An event of a history, which has them in the order in which they happened. Requests and faults are numbered apart. */
export type HistoryEvent =
  | {
      readonly type: 'invoked'
      readonly request: number
      readonly router: string
      /** True if the client gave it so little time that it may run out. */
      readonly isTimed: boolean
      readonly atMs?: number
      /** When it must have its outcome, on the clock of `atMs`; at some time, if absent. */
      readonly dueMs?: number
    }
  /** The client no longer wants an answer. */
  | { readonly type: 'cancelled'; readonly request: number }
  | {
      readonly type: 'ended'
      readonly request: number
      readonly outcome: Outcome
      readonly atMs?: number
    }
  | {
      readonly type: 'struck'
      readonly fault: number
      readonly kind: string
      /** Router whose clients alone may notice the fault; those of all routers, if absent. */
      readonly router?: string
    }
  /** All is as it was before: requests from now on have nothing to do with it. */
  | { readonly type: 'settled'; readonly fault: number }

/** Errors that a client may get, by the kind of the fault: code and reason of each. */
export type FaultErrors = Readonly<Record<string, readonly string[]>>

interface Fault {
  readonly errors: readonly string[]
  readonly router: string | undefined
}

interface Request {
  readonly router: string
  readonly isTimed: boolean
  readonly dueMs: number
  /** All that were there at some moment between its invocation and its end. */
  readonly faults: Set<Fault>
  isCancelled: boolean
  hasEnded: boolean
}

/**
 * Holds a history against what was promised: each request has exactly one outcome, the right bytes or an error that its own
 * client or a fault of its time explains, in time. Pure.
 *
 * @param kinds - a fault of a kind that it lacks explains nothing.
 * @returns what breaks a promise, in words; empty if nothing does.
 */
export function checkHistory(
  events: readonly HistoryEvent[],
  kinds: FaultErrors = FAULT_KINDS,
): readonly string[] {
  const state: State = { kinds, requests: new Map(), faults: new Map() }
  const problems: string[] = []
  for (const event of events) {
    const problem = 'fault' in event ? takeFault(state, event) : takeRequest(state, event)
    if (problem !== undefined) problems.push(`${subjectOf(event)} ${problem}`)
  }
  for (const [number, { hasEnded }] of state.requests) {
    if (!hasEnded) problems.push(`request ${number} has no outcome`)
  }
  for (const number of state.faults.keys()) problems.push(`fault ${number} has not settled`)
  return problems
}

interface State {
  readonly kinds: FaultErrors
  /** Those in flight, and those that have ended. */
  readonly requests: Map<number, Request>
  /** Those that are there. */
  readonly faults: Map<number, Fault>
}

function subjectOf(event: HistoryEvent): string {
  return 'fault' in event ? `fault ${event.fault}` : `request ${event.request}`
}

function takeFault(
  { kinds, requests, faults }: State,
  event: Extract<HistoryEvent, { fault: number }>,
): string | undefined {
  if (event.type === 'settled') {
    return faults.delete(event.fault) ? undefined : 'settled without having struck'
  }
  const fault = { errors: kinds[event.kind] ?? [], router: event.router }
  faults.set(event.fault, fault)
  for (const request of requests.values()) if (!request.hasEnded) request.faults.add(fault)
  return undefined
}

function takeRequest(
  { requests, faults }: State,
  event: Extract<HistoryEvent, { request: number }>,
): string | undefined {
  const request = requests.get(event.request)
  if (event.type === 'invoked') {
    if (request !== undefined) return 'was invoked twice'
    const { router, isTimed, dueMs = Number.POSITIVE_INFINITY } = event
    const fresh = { faults: new Set(faults.values()), isCancelled: false, hasEnded: false }
    requests.set(event.request, { router, isTimed, dueMs, ...fresh })
    return undefined
  }
  if (request === undefined) return `was ${event.type} before it was invoked`
  if (event.type === 'ended') return end(request, event)
  if (!request.hasEnded) request.isCancelled = true
  return undefined
}

function end(
  request: Request,
  { outcome, atMs = 0 }: Extract<HistoryEvent, { type: 'ended' }>,
): string | undefined {
  if (request.hasEnded) return `has another outcome: ${describe(outcome)}`
  request.hasEnded = true
  const lateMs = Math.round(atMs - request.dueMs)
  if (lateMs > 0) return `had its outcome ${lateMs} ms too late: ${describe(outcome)}`
  if (outcome.kind === 'wrong') return `was answered wrongly: ${outcome.what}`
  if (outcome.kind === 'right') {
    return request.isCancelled ? 'was answered after it was cancelled' : undefined
  }
  const named = `${outcome.code} ${outcome.reason}`
  return allowedErrors(request).has(named) ? undefined : `failed with ${describe(outcome)}`
}

function allowedErrors({ router, isTimed, isCancelled, faults }: Request): ReadonlySet<string> {
  const allowed = new Set<string>()
  if (isTimed) allowed.add('DEADLINE_EXCEEDED DEADLINE_EXCEEDED')
  if (isCancelled) allowed.add('CANCELLED CANCELLED')
  for (const fault of faults) {
    if (fault.router !== undefined && fault.router !== router) continue
    for (const error of fault.errors) allowed.add(error)
  }
  return allowed
}
