import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'
import { checkHistory, type HistoryEvent } from '../processes/history-check.ts'
import { count, formatCounts } from '../processes/history-round.ts'
import { checkCounts } from './counted.ts'
import { errorsIn, type Fault } from './fault.ts'
import { startFaultClients } from './fault-clients.ts'
import { reportOf, type System } from './system.ts'

/** Effects of one fault in one way to run. Times in milliseconds. */
export interface FaultRow {
  readonly fault: string
  /** As `reportOf` names it. */
  readonly way: string
  readonly heldMs: number
  /** How many requests ended how, of those that met the fault; without those whose own time is too short. */
  readonly outcomes: Readonly<Record<string, number>>
  /** From the strike to the end of the last request that it failed; 0 if it failed none. */
  readonly failingMs: number
  /** The longest that a request took that met the fault. */
  readonly longestMs: number
  /** The bound that is held for it. */
  readonly withinMs: number
  /** From the undoing until all was as before. */
  readonly recoveryMs: number
  readonly lost: number
  readonly duplicated: number
}

/** Requests before and after a fault, for which it is no excuse. */
const CALM = 30

/** Brings a fault over a system whose clients ask, takes it away, and holds what the clients met against what was promised. */
export async function runFault(t: Test, system: System, fault: Fault): Promise<FaultRow> {
  await fault.prepare?.(system)
  await system.settled()
  await system.connected()
  const events: HistoryEvent[] = []
  const clients = startFaultClients(system, fault, (event) => void events.push(event))
  const times = { struck: 0, undone: 0, settled: 0 }
  try {
    await clients.more(CALM)
    events.push({ type: 'struck', fault: 1, kind: fault.name })
    times.struck = performance.now()
    await fault.strike(system)
    await delay(fault.heldMs)
    await fault.undo?.(system)
    times.undone = performance.now()
    await system.settled()
    times.settled = performance.now()
    events.push({ type: 'settled', fault: 1 })
    await clients.more(CALM)
  } finally {
    await clients.stop()
  }
  await fault.cleanUp?.(system)
  const counts = await system.counts()
  const problems = checkHistory(events, { [fault.name]: errorsIn(system, fault) })
  t.same(problems.slice(0, 10), [], 'each request has one outcome, the right one, in time')
  const miscounted = checkCounts(events, counts)
  t.same(miscounted.slice(0, 10), [], 'and was executed once, or not at all')
  const met = requestsBetween(events, times.struck, times.settled)
  const outcomes = new Map<string, number>()
  for (const { outcome } of met) count(outcomes, outcome)
  const failed = met.filter(({ outcome }) => outcome !== 'right')
  const row: FaultRow = {
    fault: fault.name,
    way: reportOf(system),
    heldMs: Math.round(times.undone - times.struck),
    outcomes: Object.fromEntries(outcomes),
    failingMs: Math.round(Math.max(0, ...failed.map(({ endMs }) => endMs - times.struck))),
    longestMs: Math.round(Math.max(0, ...met.map(({ tookMs }) => tookMs))),
    withinMs: fault.withinMs,
    recoveryMs: Math.round(times.settled - times.undone),
    lost: problems.filter((problem) => problem.endsWith('has no outcome')).length,
    duplicated: miscounted.filter((problem) => problem.endsWith('times')).length,
  }
  t.comment(`${formatCounts(outcomes)}; ${JSON.stringify(row)}`)
  return row
}

/** Those that were under way between the two moments; without those whose own time is too short. */
function requestsBetween(events: readonly HistoryEvent[], fromMs: number, toMs: number) {
  const begun = new Map<number, number>()
  return events.flatMap((event) => {
    if (event.type === 'invoked' && !event.isTimed) begun.set(event.request, event.atMs ?? 0)
    if (event.type !== 'ended') return []
    const { outcome, atMs: endMs = 0 } = event
    const beganMs = begun.get(event.request)
    if (beganMs === undefined || beganMs > toMs || endMs < fromMs) return []
    const name = outcome.kind === 'error' ? `${outcome.code} ${outcome.reason}` : outcome.kind
    return [{ outcome: name, endMs, tookMs: endMs - beganMs }]
  })
}
