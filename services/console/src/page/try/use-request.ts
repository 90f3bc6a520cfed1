import { useEffect, useRef, useState } from 'preact/hooks'
import { z } from 'zod'
import { type RecordedSteps, StepSpan } from '../../api/step-span.ts'
import { CallFailure, call } from '../api-client.ts'
import { StreamFrameReader } from './frame-reader.ts'
import {
  HEADER_LENGTH,
  type InferAnswer,
  inferBytes,
  inferJson,
  parseAnswer,
} from './infer-body.ts'
import { toBlob } from './load-file.ts'
import type { RequestInput } from './request-input.ts'
import { addFrame, NO_ANSWERS, type StreamedAnswers } from './streamed-answers.ts'

export type Outcome =
  | { readonly kind: 'none' }
  | { readonly kind: 'sending' }
  | {
      readonly kind: 'failure'
      readonly failure: CallFailure
      readonly recorded: RecordedSteps
    }
  | {
      readonly kind: 'answer'
      readonly answer: InferAnswer
      readonly elapsedMs: number
      readonly recorded: RecordedSteps
    }
  | {
      readonly kind: 'stream'
      readonly stream: StreamedAnswers
      readonly isOver: boolean
      readonly elapsedMs: number
    }

export interface RequestState {
  readonly outcome: Outcome
  /**
   * Function that sends a request and shows its outcome.
   *
   * @param isStream - true if the path answers with any number of responses.
   */
  readonly send: (path: string, inputs: readonly RequestInput[], isStream: boolean) => Promise<void>
  /** Function that cancels the request in flight. */
  readonly cancel: () => void
}

/** Keeps the state of one request at a time. A new request cancels the one before, and so does the end of the view. */
export function useRequest(): RequestState {
  const [outcome, setOutcome] = useState<Outcome>({ kind: 'none' })
  const ending = useRef<AbortController>(undefined)
  useEffect(() => () => ending.current?.abort(), [])
  return {
    outcome,
    cancel: () => {
      ending.current?.abort()
      setOutcome((now) => (now.kind === 'stream' ? { ...now, isOver: true } : { kind: 'none' }))
    },
    send: async (path, inputs, isStream) => {
      ending.current?.abort()
      const { signal } = (ending.current = new AbortController())
      setOutcome({ kind: 'sending' })
      const show = (next: Outcome): void => {
        if (!signal.aborted) setOutcome(next)
      }
      const answering = isStream ? readStream : readAnswer
      const next = await infer(path, inputs, {
        signal,
        read: (response, at) => answering(response, at, show),
      })
      show(next)
    },
  }
}

async function infer(
  path: string,
  inputs: readonly RequestInput[],
  o: {
    readonly signal: AbortSignal
    readonly read: (response: Response, startedAt: number) => Promise<Outcome>
  },
): Promise<Outcome> {
  let problem = 'The request cannot be made'
  try {
    // Memory may not hold it.
    const json = inferJson(inputs, true)
    const headers = { [HEADER_LENGTH]: String(new TextEncoder().encode(json).byteLength) }
    const body = toBlob([json, ...inferBytes(inputs)])
    const startedAt = performance.now()
    const response = await call(path, { method: 'POST', headers, body, signal: o.signal })
    problem = 'The answer cannot be read'
    return await o.read(response, startedAt)
  } catch (error) {
    const failure =
      error instanceof CallFailure ? error : new CallFailure(0, `${problem}: ${toText(error)}`)
    return { kind: 'failure', failure, recorded: readSteps(failure.headers) }
  }
}

async function readAnswer(response: Response, startedAt: number): Promise<Outcome> {
  const bytes = new Uint8Array(await response.arrayBuffer())
  const elapsedMs = performance.now() - startedAt
  const answer = parseAnswer(bytes, response.headers.get(HEADER_LENGTH))
  return { kind: 'answer', answer, elapsedMs, recorded: readSteps(response.headers) }
}

/** Shows what has come with each piece. @throws Error if it ends in the middle. */
async function readStream(
  { body }: Response,
  startedAt: number,
  show: (outcome: Outcome) => void,
): Promise<Outcome> {
  const reader = body?.getReader()
  const frames = new StreamFrameReader()
  let stream = NO_ANSWERS
  const outcome = (isOver: boolean): Outcome => {
    return { kind: 'stream', stream, isOver, elapsedMs: performance.now() - startedAt }
  }
  for (;;) {
    const { done = true, value } = (await reader?.read()) ?? {}
    if (done) break
    for (const frame of value === undefined ? [] : frames.push(value)) {
      stream = addFrame(stream, frame)
    }
    show(outcome(false))
  }
  if (frames.rest > 0) throw new Error('it ends in the middle of a response')
  return outcome(true)
}

/** Reads how long each step took; none without the header. */
function readSteps(headers: Headers): RecordedSteps {
  const spans = z.array(StepSpan).parse(JSON.parse(headers.get('tutti-steps') ?? '[]'))
  return { spans, leftOut: Number(headers.get('tutti-steps-left-out') ?? 0) }
}

function toText(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
