import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import type { Test } from 'tap'
import { describe } from '../processes/asking.ts'
import { checkHistory, FAULT_KINDS, type HistoryEvent } from '../processes/history-check.ts'
import { type RouterPlace, startHistoryClients } from '../processes/history-clients.ts'
import { SERVED, STEP_MODELS } from '../processes/history-cluster.ts'
import type { Random } from '../processes/history-requests.ts'
import { OCR, OCR_MODELS } from '../seed-systems.ts'
import { BASIC, tempFolder } from '../temp-repository.ts'
import { PYTHON_FIXTURES, PYTHON_MODELS } from './model-kinds.ts'
import { RELAYS_HELD } from './relay-watch.ts'
import { startRestClients } from './rest-clients.ts'
import type { Numbers } from './soak-report.ts'

/** One way of running, with all its processes, which end with the test. */
export interface Way {
  /** Does everything once. */
  readonly round: (t: Test, o: RoundOptions) => Promise<Done>
  /** Measures what its processes hold when they have nothing to do. */
  readonly held: () => Promise<Numbers>
}

export interface RoundOptions {
  readonly random: Random
  /** Seed of this round alone. */
  readonly seed: number
}

export interface Done {
  readonly done: Numbers
  readonly problems: readonly string[]
}

/** All models that are asked for all the time. */
export const SOAK_MODELS: readonly string[] = [
  ...new Set([...STEP_MODELS, ...SERVED, ...PYTHON_MODELS, ...OCR_MODELS]),
]

/** A repository of them that the test may change. */
export async function soakRepository(t: Test): Promise<string> {
  const folder = await tempFolder(t)
  for (const model of SOAK_MODELS) {
    const from = sourceOf(model)
    await cp(join(from, model), join(folder, model), { recursive: true })
  }
  return folder
}

function sourceOf(model: string): string {
  if (PYTHON_MODELS.includes(model)) return PYTHON_FIXTURES
  return OCR_MODELS.some((name) => name === model) ? OCR : BASIC
}

/** Errors that a client may be told, by the kind of the fault. */
const KINDS = { ...FAULT_KINDS, [RELAYS_HELD]: FAULT_KINDS['broker held'] }

/** Clients and requests of one round, for each way. */
const CLIENTS = { grpc: 6, rest: 2 }
export const REQUESTS = 500
const THINK_MS = 20

/**
 * Clients that ask all the time while `work` goes on, and until there were enough requests. All that happened is held against what is
 * promised: each request has one outcome, the right bytes or an error that a fault of its time explains.
 */
export async function askMeanwhile(
  routers: readonly RouterPlace[],
  seed: number,
  work: (record: (event: HistoryEvent) => void, ended: () => number) => Promise<void>,
): Promise<Done> {
  const events: HistoryEvent[] = []
  const record = (event: HistoryEvent): void => void events.push(event)
  const common = { seed, routers, record, thinkMs: THINK_MS }
  const clients = [
    startHistoryClients({ ...common, clients: CLIENTS.grpc }),
    startRestClients({ ...common, clients: CLIENTS.rest }),
  ]
  const ended = (): number => clients.reduce((sum, one) => sum + one.ended, 0)
  try {
    await work(record, ended)
  } finally {
    await Promise.all(clients.map((one) => one.stop()))
  }
  return { done: countEvents(events), problems: checkHistory(events, KINDS) }
}

function countEvents(events: readonly HistoryEvent[]): Numbers {
  const done: Record<string, number> = {}
  const count = (what: string): void => {
    done[what] = (done[what] ?? 0) + 1
  }
  for (const event of events) {
    if (event.type === 'struck') count(`fault: ${event.kind}`)
    if (event.type !== 'ended') continue
    const { outcome } = event
    count(
      `asked: ${outcome.kind === 'error' ? describe({ ...outcome, message: '' }) : outcome.kind}`,
    )
  }
  return done
}
