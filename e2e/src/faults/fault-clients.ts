import { setTimeout as delay } from 'node:timers/promises'
import { until } from '@tutti/chassis/testing'
import { InferenceClient } from '@tutti/protocol/client'
import { seededRandom } from '../hostile.ts'
import { ask } from '../processes/asking.ts'
import type { HistoryEvent } from '../processes/history-check.ts'
import { between, oneOf, type Random } from '../processes/history-requests.ts'
import { countedQuestion } from './counted.ts'
import type { Fault } from './fault.ts'
import type { Host } from './network.ts'
import type { System } from './system.ts'

const CLIENTS = 8
const THINK_MS = 40
/** Requests of a hundred that have a time that is over before they are done; that have a new connection; that have large tensors. */
const TIMED = 6
const FRESH = 20
const LARGE = 4
const KIB = 1024
/** Time that a busy machine may take to notice that a deadline is over. */
const SLACK_MS = 10_000

let lastId = 0

/** Starts clients that ask one thing after the other until they are told to stop. Each request has a number that no other has. */
export function startFaultClients(
  system: System,
  { withinMs, timeoutMs = 60_000 }: Pick<Fault, 'withinMs' | 'timeoutMs'>,
  record: (event: HistoryEvent) => void,
) {
  const state = { isStopped: false, ended: 0 }
  const askOnce = async (random: Random, connections: Connections): Promise<void> => {
    const target = oneOf(random, system.targets)
    const id = ++lastId
    const isTimed = random() * 100 < TIMED
    const holdMs = isTimed ? between(random, 300, 600) : between(random, 0, 20)
    const bytes = random() * 100 < LARGE ? between(random, KIB, KIB * KIB) : between(random, 4, KIB)
    const limitMs = isTimed ? between(random, 20, 200) : timeoutMs
    if (random() * 100 < FRESH) connections.close(target)
    const atMs = performance.now()
    const dueMs = atMs + (isTimed ? limitMs + SLACK_MS : withinMs)
    record({ type: 'invoked', request: id, router: target.name, isTimed, atMs, dueMs })
    const question = countedQuestion({ id, holdMs, bytes })
    const outcome = await ask(connections.to(target), question, { timeoutMs: limitMs })
    // As a client does that wants to go on: what it was connected to may be gone.
    if (outcome.kind === 'error') connections.close(target)
    state.ended += 1
    record({ type: 'ended', request: id, outcome, atMs: performance.now() })
  }
  const run = async (index: number): Promise<void> => {
    const random = seededRandom(lastId + index * 7919)
    const connections = new Connections()
    while (!state.isStopped) {
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      await askOnce(random, connections)
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      await delay(random() * THINK_MS)
    }
    for (const target of system.targets) connections.close(target)
  }
  const clients = Array.from({ length: CLIENTS }, (_, index) => run(index))
  return {
    /** Waits for so many more outcomes. */
    more: async (outcomes: number): Promise<void> => {
      const wanted = state.ended + outcomes
      await until('the clients go on', () => state.ended >= wanted)
    },
    /** Lets every client finish its request. */
    stop: async (): Promise<void> => {
      state.isStopped = true
      await Promise.all(clients)
    },
  }
}

/** Connections of one client: one to each target. */
class Connections {
  readonly #open = new Map<Host, InferenceClient>()

  to(target: Host): InferenceClient {
    const known = this.#open.get(target)
    if (known !== undefined) return known
    const client = new InferenceClient({ address: `${target.address}:8001` })
    this.#open.set(target, client)
    return client
  }

  close(target: Host): void {
    this.#open.get(target)?.close()
    this.#open.delete(target)
  }
}
