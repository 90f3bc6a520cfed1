import { type Clock, openCallScope } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { parseBoundedJson } from '@tutti/formats'
import type { Envelope } from '@tutti/protocol'
import { EMPTY_CONTEXT, type NamedTensor, type StepResponse } from '@tutti/tensor'
import type { CallJob } from '../calls/call.ts'
import type { IncomingCalls } from '../calls/incoming-calls.ts'
import type { EndpointSettings } from '../endpoint-settings.ts'
import { type AnswerQuestion, type AskOptions, QUESTIONS, type Question } from '../endpoints.ts'
import type { SendEnvelope } from './remote-executor.ts'

/*
 * A question is a call to the member itself instead of a model of it: its envelope names no model, its step is the question,
 * its input is the argument (JSON). So it has what calls have: any size in pieces, a time, a cancel, and an end
 * when the other side dies.
 */

const ARGUMENT = 'argument'
const ANSWER = 'answer'
/** Values of a question or an answer, as parseBoundedJson counts: 256 for each model version that a heartbeat announces at most. */
const MAX_VALUES = 2 ** 20

/** A question with its argument. */
export interface AskedQuestion {
  readonly question: Question
  readonly argument: unknown
}

/**
 * Asks a member a question and waits for its answer.
 *
 * @throws ServeError STEP_UNAVAILABLE if none comes within `timeoutMs`; else the member's own error.
 */
export async function askMember(
  send: SendEnvelope,
  asked: AskedQuestion & Required<AskOptions> & { readonly member: string },
  { clock, settings }: { readonly clock: Clock; readonly settings: EndpointSettings },
): Promise<unknown> {
  const { member, question, argument, timeoutMs } = asked
  const scope = openCallScope({ clock, parent: asked.signal })
  const unanswered = (): void =>
    scope.cancel(new ServeError('STEP_UNAVAILABLE', `no answer came within ${timeoutMs} ms`))
  const stopTimer = clock.setTimer(timeoutMs, unanswered)
  try {
    const { envelope, tensors } = toQuestionCall({ question, argument, remainingMs: timeoutMs })
    const { signal } = scope.context
    const response = await new Promise<StepResponse>((resolve, reject) => {
      send({ to: member, envelope, tensors, sink: { send: resolve, fail: reject }, signal })
    })
    return readAnswer(question, response, settings.answerBytes)
  } catch (error) {
    throw ServeError.from(error).withDetails({ replica: member })
  } finally {
    stopTimer()
    scope.close()
  }
}

/** The parts of a member that it needs to answer questions. */
export interface QuestionContext {
  readonly clock: Clock
  readonly settings: EndpointSettings
  /** Answers `describe`. */
  readonly describe: () => unknown
  /** Answers every other question. */
  readonly answer: AnswerQuestion
}

/** Answers a call that is a question, and ends it: with the answer, or with the error that answering it threw. */
export async function answerQuestion(
  incomingCalls: IncomingCalls,
  { key, envelope, inputs }: CallJob,
  { clock, settings, describe, answer }: QuestionContext,
): Promise<void> {
  try {
    const { question, argument } = readQuestion(envelope, inputs, settings.answerBytes)
    const value = question === 'describe' ? describe() : await answer(question, argument)
    incomingCalls.respond(clock.now(), key, toAnswer(value))
    incomingCalls.ended(clock.now(), key)
  } catch (error) {
    incomingCalls.ended(clock.now(), key, error)
  }
}

/** Makes the call that carries a question. @returns its envelope, and `tensors`, the bytes of the envelope's inputs. */
export function toQuestionCall(o: {
  readonly question: Question
  readonly argument: unknown
  readonly remainingMs: number
}): { readonly envelope: Envelope; readonly tensors: readonly Uint8Array[] } {
  const argument = toJson(o.argument)
  const envelope: Envelope = {
    requestKey: '',
    model: '',
    version: 0,
    revision: '',
    step: o.question,
    attempt: 1,
    context: EMPTY_CONTEXT,
    requestedOutputs: [],
    inputs: [{ name: ARGUMENT, datatype: 'UINT8', shape: [argument.byteLength] }],
    remainingMs: o.remainingMs,
  }
  return { envelope, tensors: [argument] }
}

/**
 * Reads the question that a call carries.
 *
 * @param inputs - bytes of the envelope's inputs.
 * @param mostBytes - most bytes that the argument may have.
 * @throws ServeError UNSUPPORTED for an unknown question, MALFORMED_MESSAGE, MESSAGE_TOO_LARGE.
 */
export function readQuestion(
  envelope: Envelope,
  inputs: readonly Uint8Array[],
  mostBytes: number,
): AskedQuestion {
  const question = QUESTIONS.find((known) => known === envelope.step)
  if (question === undefined) {
    throw new ServeError('UNSUPPORTED', `question '${envelope.step}': want ${QUESTIONS.join(', ')}`)
  }
  const [argument] = inputs
  if (argument === undefined || envelope.inputs[0]?.name !== ARGUMENT) {
    throw new ServeError('MALFORMED_MESSAGE', `question '${question}': got no argument`)
  }
  return { question, argument: fromJson(`question '${question}'`, argument, mostBytes) }
}

/** Makes the response that carries an answer. */
export function toAnswer(answer: unknown): StepResponse {
  const data = toJson(answer)
  const output: NamedTensor = { name: ANSWER, datatype: 'UINT8', shape: [data.byteLength], data }
  return { index: 0, final: true, outputs: [output], parameters: new Map() }
}

/** Reads the answer that a response carries. @throws ServeError MALFORMED_MESSAGE or MESSAGE_TOO_LARGE if it carries none. */
export function readAnswer(
  question: Question,
  { outputs }: StepResponse,
  mostBytes: number,
): unknown {
  const bytes = outputs.find(({ name }) => name === ANSWER)?.data ?? new Uint8Array()
  return fromJson(`answer to '${question}'`, bytes, mostBytes)
}

function toJson(value: unknown): Uint8Array {
  return Buffer.from(JSON.stringify(value ?? null))
}

function fromJson(what: string, bytes: Uint8Array, mostBytes: number): unknown {
  if (bytes.byteLength > mostBytes) {
    const text = `${what}: ${bytes.byteLength} bytes, want at most ${mostBytes}`
    throw new ServeError('MESSAGE_TOO_LARGE', text)
  }
  try {
    return parseBoundedJson(bytes, MAX_VALUES)
  } catch (error) {
    throw ServeError.from(error).withPrefix(`${what}: got `)
  }
}
