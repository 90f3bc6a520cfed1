import type { TensorPart } from '@tutti/protocol'
import type { Fate, Relayed } from './relay.ts'

/** What a fault strikes in every call: a message, or a chunk on its way there or back. */
export const TARGETS = [
  'offer',
  'accepted',
  'credit to the step',
  'credit to the router',
  'response',
  'done',
  'chunk to the step',
  'chunk to the router',
] as const
export type FaultTarget = (typeof TARGETS)[number] | 'cancel'

export interface Fault {
  readonly fate: Exclude<Fate, 'pass'>
  readonly target: FaultTarget
}

/** Strikes once for each request: the request's id says how. */
export interface FaultPlan {
  /** Makes a request id for a fault. */
  idOf(fault: Fault): string
  /** Undefined for what belongs to no request: heartbeats, pings, and questions, which are calls that name no model. */
  fate(relayed: Relayed): Fate | undefined
  /** Faults that have struck. */
  readonly struck: ReadonlySet<string>
  /** Calls of models that were offered, each attempt of a request counted. */
  readonly calls: number
}

/** @param router - the peer id of the router between which and the steps the faults happen. */
export function planFaults(router: () => string): FaultPlan {
  const calls = new Map<string, string>()
  const transfers = new Map<string, string>()
  const struck = new Set<string>()
  const learn = (relayed: Relayed): void => {
    if (relayed.channel !== 'ctl') return
    const { message, to } = relayed
    if (message.type === 'offer' && message.envelope.model !== '') {
      const { id } = message.envelope.context
      calls.set(`${message.from} ${message.call}`, id)
      learnTransfers(transfers, message.from, message.parts, id)
    }
    if (message.type === 'response') {
      const id = calls.get(`${to} ${message.call}`)
      if (id !== undefined) learnTransfers(transfers, message.from, message.parts, id)
    }
  }
  const idFor = (relayed: Relayed): string | undefined => {
    if (relayed.channel === 'data') {
      return transfers.get(`${relayed.chunk.from} ${relayed.chunk.transfer}`)
    }
    if (relayed.channel !== 'ctl') return undefined
    const caller = relayed.to === router() ? relayed.to : relayed.message.from
    return calls.get(`${caller} ${relayed.message.call}`)
  }
  return {
    struck,
    get calls() {
      return calls.size
    },
    idOf: ({ fate, target }) => `${fate}: ${target}`,
    fate: (relayed) => {
      learn(relayed)
      const id = idFor(relayed)
      if (id === undefined) return undefined
      if (struck.has(id)) return 'pass'
      const [fate, target] = id.split(': ')
      if (target !== targetOf(relayed, router()) || !isFate(fate)) return 'pass'
      struck.add(id)
      return fate
    },
  }
}

function learnTransfers(
  transfers: Map<string, string>,
  from: string,
  parts: readonly TensorPart[],
  id: string,
): void {
  for (const part of parts) {
    if (part.kind === 'transfer') transfers.set(`${from} ${part.transfer}`, id)
  }
}

function targetOf(relayed: Relayed, router: string): string {
  const to = relayed.to === router ? 'to the router' : 'to the step'
  if (relayed.channel === 'data') return `chunk ${to}`
  if (relayed.channel !== 'ctl') return ''
  const { type } = relayed.message
  return type === 'credit' ? `credit ${to}` : type
}

function isFate(text: string | undefined): text is Fate {
  return text === 'lose' || text === 'twice' || text === 'late'
}
