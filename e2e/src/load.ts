import { until } from '@tutti/chassis/testing'
import { decodeInferResponse, encodeInferRequest } from '@tutti/protocol'
import type { Test } from 'tap'
import {
  answerProblem,
  identityQuestion,
  problemOf,
  type Question,
  versionedQuestion,
} from './processes/questions.ts'
import { openRawClient, type RawClient } from './raw-infer.ts'
import { restInfer, restOutputs } from './rest-infer.ts'
import type { Target } from './serving.ts'

/**
 * Starts clients that ask one thing after the other until the server refuses them, and compare every byte of every answer: half
 * over gRPC and half over REST, half of each to a model and half to an ensemble.
 *
 * @param o.bytes - of each request's tensor, and so of each answer's.
 */
export function startLoad(
  t: Test,
  target: Target,
  o: { readonly clients: number; readonly bytes: number },
) {
  const questions = [identityQuestion(o.bytes), versionedQuestion(o.bytes)] as const
  const counts = Array.from({ length: o.clients }, () => 0)
  const clients = counts.map(async (_zero, i) => {
    const question = questions[i % 2 === 0 ? 0 : 1]
    const answer =
      i % 4 < 2 ? askGrpc(openRawClient(t, target), question) : () => askRest(target, question)
    for (;;) {
      const problem = await answer()
      if (problem === REFUSED) return []
      if (problem !== undefined) return [`client ${i}: ${problem}`]
      counts[i] = (counts[i] ?? 0) + 1
    }
  })
  return {
    /** Answers that came whole and right, over all clients. */
    get complete() {
      return counts.reduce((sum, count) => sum + count, 0)
    },
    /** Resolves when each client has so many of them. */
    untilEachHas: (answers: number) =>
      until(`each client has ${answers} answers`, () => counts.every((n) => n >= answers)),
    /** Every client that met something else than a right answer or a clean refusal says what; none should. */
    ended: Promise.all(clients).then((problems) => problems.flat()),
  }
}

const REFUSED = 'refused'

/** One request: undefined for the right answer, REFUSED if the server did not take it, else what was wrong. */
type Asker = () => Promise<string | undefined>

function askGrpc(client: RawClient, question: Question): Asker {
  const request = encodeInferRequest(question.request)
  return async () => {
    const { bytes, error, hasBegun } = await client.infer(request)
    if (bytes !== undefined) {
      return answerProblem(question, decodeInferResponse(bytes))
    }
    const isRefused = !hasBegun && error !== undefined && REFUSALS.test(error.details)
    return isRefused ? REFUSED : `${error?.message}, ${hasBegun ? 'in' : 'before'} the answer`
  }
}

/** Texts of a clean refusal: the server's, and those of grpc-js after a GOAWAY and without a listener. */
const REFUSALS = /has stopped accepting new requests|Stream refused by server|ECONNREFUSED/

async function askRest(target: Target, question: Question): Promise<string | undefined> {
  const { modelName, inputs } = question.request
  let isAccepted = false
  try {
    const onContinue = (): void => {
      isAccepted = true
    }
    const answer = await restInfer(target, modelName, inputs, { onContinue })
    if (answer.headers['tutti-error-reason'] === 'SERVER_STOPPING') return REFUSED
    return problemOf(question, restOutputs(answer).get(question.output))
  } catch (error) {
    const { code, message } = toProblem(error)
    // A connection that the system accepted but the server never saw is reset when the server closes its socket.
    const isRefused = code === 'ECONNREFUSED' || (code === 'ECONNRESET' && !isAccepted)
    return isRefused
      ? REFUSED
      : `${code} after ${isAccepted ? '100 Continue' : 'nothing'}: ${message}`
  }
}

function toProblem(error: unknown): { readonly code: string; readonly message: string } {
  if (!(error instanceof Error)) return { code: '', message: String(error) }
  return { code: 'code' in error ? String(error.code) : '', message: error.message }
}
