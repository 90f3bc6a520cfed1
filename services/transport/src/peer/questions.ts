import { ServeError } from '@tutti/errors'
import { fromWireError, toWireError } from '@tutti/protocol'
import { z } from 'zod'

/** The questions beside inference that a step answers. */
export const QUESTIONS = ['describe', 'statistics'] as const

export type Question = (typeof QUESTIONS)[number]

/** True if the text names a question that a step answers. */
export function isQuestion(text: string | undefined): text is Question {
  return QUESTIONS.some((question) => question === text)
}

const STATUS = z.custom<ServeError['code']>((value) => typeof value === 'string')
const Answer = z.union([
  z.object({ answer: z.unknown() }),
  z.object({
    error: z.object({
      code: STATUS,
      reason: z.string(),
      message: z.string(),
      details: z.record(z.string(), z.string()),
    }),
  }),
])

/** A question's argument, or an answer, as JSON. */
export function encodeArgument(argument: unknown): Uint8Array {
  return Buffer.from(JSON.stringify(argument ?? null))
}

/** @throws ServeError MALFORMED_MESSAGE if it is no JSON. */
export function decodeArgument(bytes: Uint8Array): unknown {
  try {
    const value: unknown = JSON.parse(Buffer.from(bytes).toString('utf8'))
    return value
  } catch (error) {
    throw new ServeError('MALFORMED_MESSAGE', 'question: got no JSON', { cause: error })
  }
}

export function encodeAnswer(answer: unknown): Uint8Array {
  return Buffer.from(JSON.stringify({ answer: answer ?? null }))
}

export function encodeAnswerError(error: unknown): Uint8Array {
  return Buffer.from(JSON.stringify({ error: toWireError(ServeError.from(error)) }))
}

/** @throws ServeError: the one that the peer answered; MALFORMED_MESSAGE for what is no answer. */
export function decodeAnswer(peer: string, bytes: Uint8Array): unknown {
  const parsed = Answer.safeParse(decodeArgument(bytes))
  const details = { replica: peer }
  if (!parsed.success) {
    const text = `answer of peer '${peer}': ${z.prettifyError(parsed.error)}`
    throw new ServeError('MALFORMED_MESSAGE', text, { details })
  }
  if ('error' in parsed.data) throw fromWireError(parsed.data.error).withDetails(details)
  return parsed.data.answer
}
