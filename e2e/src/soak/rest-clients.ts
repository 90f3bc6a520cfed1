import { setTimeout as delay } from 'node:timers/promises'
import { seededRandom } from '../hostile.ts'
import type { Outcome } from '../processes/asking.ts'
import type { HistoryClientsOptions } from '../processes/history-clients.ts'
import { oneOf, planRequest } from '../processes/history-requests.ts'
import { problemOf, type Question } from '../processes/questions.ts'
import type { RestAnswer } from '../rest-call.ts'
import { restInfer, restOutputs } from '../rest-infer.ts'
import type { Target } from '../serving.ts'

/** Numbers of requests from here on are not those of the clients of gRPC. */
const FIRST_NUMBER = 1_000_000_000

/** Starts clients like those of `startHistoryClients` that ask over REST. They end by `stop` only. */
export function startRestClients(o: HistoryClientsOptions) {
  const state = { isStopped: false, asked: FIRST_NUMBER, ended: 0 }
  const run = async (index: number): Promise<void> => {
    const random = seededRandom(o.seed + index * 104_729)
    while (!state.isStopped) {
      const place = oneOf(random, o.routers)
      const request = state.asked++
      const { question } = planRequest(random, request % FIRST_NUMBER)
      o.record({ type: 'invoked', request, router: place.name, isTimed: false })
      const outcome = await askRest(place.member, question)
      o.record({ type: 'ended', request, outcome })
      state.ended += 1
      await delay(random() * o.thinkMs)
    }
  }
  const clients = Array.from({ length: o.clients }, (_, index) => run(index))
  return {
    get ended() {
      return state.ended
    },
    stop: async (): Promise<void> => {
      state.isStopped = true
      await Promise.all(clients)
    },
  }
}

/** Asks once over REST and checks the answer. Never rejects. */
export async function askRest(target: Target, question: Question): Promise<Outcome> {
  const { modelName, inputs } = question.request
  try {
    const answer = await restInfer(target, modelName, inputs)
    if (answer.status !== 200) return refusal(answer)
    const what = problemOf(question, restOutputs(answer).get(question.output))
    return what === undefined ? { kind: 'right' } : { kind: 'wrong', what }
  } catch (error) {
    // The words of our client of gRPC for a connection that breaks or is refused.
    const message = error instanceof Error ? error.message : String(error)
    return failure('UNAVAILABLE', 'SERVER_NOT_READY', message)
  }
}

/** Statuses that say no more than the code of gRPC. */
const CODES: ReadonlyMap<number, string> = new Map([
  [429, 'RESOURCE_EXHAUSTED'],
  [499, 'CANCELLED'],
  [503, 'UNAVAILABLE'],
  [504, 'DEADLINE_EXCEEDED'],
])

function refusal({ status, headers, body }: RestAnswer): Outcome {
  const reason = String(headers['tutti-error-reason'] ?? 'INTERNAL')
  return failure(CODES.get(status) ?? `HTTP ${status}`, reason, body.toString())
}

function failure(code: string, reason: string, message: string): Outcome {
  return { kind: 'error', code, reason, message, details: {} }
}
