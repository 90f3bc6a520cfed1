import { setTimeout as delay } from 'node:timers/promises'
import { InferenceClient } from '@tutti/protocol/client'
import { seededRandom } from '../hostile.ts'
import { ask, errorFields, LONG_MS, type Outcome } from './asking.ts'
import type { Member } from './harness.ts'
import type { HistoryEvent } from './history-check.ts'
import {
  between,
  oneOf,
  type PlannedRequest,
  planRequest,
  type Random,
} from './history-requests.ts'
import { answerProblem } from './questions.ts'

/** A place in the cluster that one router after another takes. */
export interface RouterPlace {
  readonly name: string
  readonly member: Member
}

export type HistoryClients = ReturnType<typeof startHistoryClients>

export interface HistoryClientsOptions {
  readonly seed: number
  readonly clients: number
  /** Where each request goes is decided when it is made. */
  readonly routers: readonly RouterPlace[]
  /** Takes what happens, in order. */
  readonly record: (event: HistoryEvent) => void
  /** Most that a client thinks before its next request. */
  readonly thinkMs: number
}

/** One in so many clients asks over streams, where a second answer to a request would show. */
const STREAMING = 4
const MOST_ON_A_STREAM = 5

/** Starts clients that ask, each one thing after the other, and write down what happens. They end by `stop` only. */
export function startHistoryClients(o: HistoryClientsOptions) {
  const state = { isStopped: false, asked: 0, ended: 0 }
  const record = (event: HistoryEvent): void => {
    if (event.type === 'ended') state.ended += 1
    o.record(event)
  }
  const run = async (index: number): Promise<void> => {
    const random = seededRandom(o.seed + index * 7919)
    const connections = new Connections()
    while (!state.isStopped) {
      const place = oneOf(random, o.routers)
      const client = connections.to(place.member)
      const first = state.asked
      if (index % STREAMING === 0) {
        const count = between(random, 1, MOST_ON_A_STREAM)
        state.asked += count
        await askOnStream(client, place.name, planMany(random, first, count), record)
      } else {
        state.asked += 1
        await askAlone(client, place.name, first, planRequest(random, first), record)
      }
      // People think, and a client that was refused does not ask again at once.
      await delay(random() * o.thinkMs)
    }
    connections.close()
  }
  const clients = Array.from({ length: o.clients }, (_, index) => run(index))
  return {
    /** Requests that have ended. */
    get ended() {
      return state.ended
    },
    /** Lets every client finish what it has asked. */
    stop: async (): Promise<void> => {
      state.isStopped = true
      await Promise.all(clients)
    },
  }
}

/** One connection to each router; those to routers that are gone are closed. */
class Connections {
  readonly #clients = new Map<Member, InferenceClient>()

  to(member: Member): InferenceClient {
    const known = this.#clients.get(member)
    if (known !== undefined) return known
    // A client asks one thing at a time: what is older than the few places of the cluster is not in use.
    if (this.#clients.size >= MOST_CONNECTIONS) this.close()
    const client = new InferenceClient({ address: `127.0.0.1:${member.grpcPort}` })
    this.#clients.set(member, client)
    return client
  }

  close(): void {
    for (const client of this.#clients.values()) client.close()
    this.#clients.clear()
  }
}

const MOST_CONNECTIONS = 4

async function askAlone(
  client: InferenceClient,
  router: string,
  request: number,
  { question, cancelAfterMs, timeoutMs }: PlannedRequest,
  record: HistoryClientsOptions['record'],
): Promise<void> {
  record({ type: 'invoked', request, router, isTimed: timeoutMs !== undefined })
  const cancel = new AbortController()
  const timer =
    cancelAfterMs === undefined
      ? undefined
      : setTimeout(() => {
          record({ type: 'cancelled', request })
          cancel.abort()
        }, cancelAfterMs)
  const outcome = await ask(client, question, {
    signal: cancel.signal,
    timeoutMs: timeoutMs ?? LONG_MS,
  })
  clearTimeout(timer)
  record({ type: 'ended', request, outcome })
}

/** Requests of one stream, by their ids. */
type Many = ReadonlyMap<string, PlannedRequest>

function planMany(random: Random, first: number, count: number): Many {
  return new Map(
    Array.from({ length: count }, (_, i) => [String(first + i), planRequest(random, first + i)]),
  )
}

/** Asks many on one stream: every message of it is written down, and what ends the stream for those without one. */
async function askOnStream(
  client: InferenceClient,
  router: string,
  many: Many,
  record: HistoryClientsOptions['record'],
): Promise<void> {
  const open = new Set(many.keys())
  const end = (id: string, outcome: Outcome): void => {
    open.delete(id)
    record({ type: 'ended', request: Number(id), outcome })
  }
  for (const id of many.keys()) {
    record({ type: 'invoked', request: Number(id), router, isTimed: false })
  }
  // The first error ends the stream, so that it comes with its code and reason.
  const headers = { triton_grpc_error: 'true' }
  const stream = client.openStream({ headers, timeoutMs: LONG_MS })
  let left: Outcome = streamError('INTERNAL', 'INTERNAL', 'the stream ended without an answer')
  try {
    // A failure of the stream shows where its responses are read.
    for (const [id, { question }] of many) stream.send({ ...question.request, id }).catch(() => {})
    stream.end()
    for await (const { errorMessage, response } of stream.responses()) {
      const id = response?.id ?? ''
      const asked = many.get(id)
      if (response === undefined || asked === undefined) {
        throw new Error(`an answer to "${id}": ${errorMessage}`)
      }
      // Only what no fault may cause stands in the stream even so: a refusal before any work.
      if (errorMessage !== '') end(id, streamError('UNKNOWN', 'IN_STREAM', errorMessage))
      else {
        const what = answerProblem(asked.question, response)
        end(id, what === undefined ? { kind: 'right' } : { kind: 'wrong', what })
      }
    }
  } catch (error) {
    const { code, reason, message } = errorFields(error)
    left = streamError(String(code), String(reason), String(message))
  }
  for (const id of open) end(id, left)
}

function streamError(code: string, reason: string, message: string): Outcome {
  return { kind: 'error', code, reason, message, details: {} }
}
