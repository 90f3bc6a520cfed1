import { z } from 'zod'
import { RecordedSteps } from '../../api/step-span.ts'
import type { StreamFrame } from './frame-reader.ts'
import { type InferAnswer, parseAnswerParts } from './infer-body.ts'
import { readBytes, toText } from './tensor-elements.ts'

/** Most responses that are kept, since a stream may have no end. */
export const MOST_ANSWERS = 20
const MOST_CHARACTERS = 20_000

/** The part of a stream of responses that has come. */
export interface StreamedAnswers {
  readonly count: number
  /** The last responses, at most MOST_ANSWERS. */
  readonly answers: readonly InferAnswer[]
  /** Texts by output: those of all responses joined, and cut to the last 20,000 characters. */
  readonly texts: ReadonlyMap<string, string>
  /** Text of the error with which the stream failed; '' if it did not. */
  readonly failure: string
  readonly reason: string
  readonly recorded: RecordedSteps
}

export const NO_ANSWERS: StreamedAnswers = {
  count: 0,
  answers: [],
  texts: new Map(),
  failure: '',
  reason: '',
  recorded: { spans: [], leftOut: 0 },
}

const Failure = z.object({ error: z.string(), reason: z.string() })
const Ended = z.object({ steps: RecordedSteps })

/** Adds a frame to the stream so far; returns a new object. @throws Error for a frame of another version of the server. */
export function addFrame(before: StreamedAnswers, { json, data }: StreamFrame): StreamedAnswers {
  const value: unknown = JSON.parse(json)
  const failed = Failure.safeParse(value)
  if (failed.success) {
    return { ...before, failure: failed.data.error, reason: failed.data.reason }
  }
  const ended = Ended.safeParse(value)
  if (ended.success) return { ...before, recorded: ended.data.steps }
  const answer = parseAnswerParts(value, data)
  const texts = new Map(before.texts)
  for (const { name, datatype, data: bytes } of answer.outputs) {
    const text = datatype === 'BYTES' ? onlyText(bytes) : undefined
    if (text !== undefined)
      texts.set(name, `${texts.get(name) ?? ''}${text}`.slice(-MOST_CHARACTERS))
  }
  const answers = [...before.answers, answer].slice(-MOST_ANSWERS)
  return { ...before, count: before.count + 1, answers, texts }
}

function onlyText(data: Uint8Array): string | undefined {
  const { first, count } = readBytes(data, 1)
  return count === 1 && first[0] !== undefined ? toText(first[0]) : undefined
}
