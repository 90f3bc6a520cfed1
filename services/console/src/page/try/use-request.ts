import { useEffect, useRef, useState } from 'preact/hooks'
import { z } from 'zod'
import { type RecordedSteps, StepSpan } from '../../api/step-span.ts'
import { CallFailure, call } from '../api-client.ts'
import { type Answer, HEADER_LENGTH, inferBytes, inferJson, parseAnswer } from './infer-body.ts'
import { toBlob } from './load-file.ts'
import type { RequestInput } from './request-input.ts'

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
      readonly answer: Answer
      readonly elapsedMs: number
      readonly recorded: RecordedSteps
    }

export interface RequestState {
  readonly outcome: Outcome
  readonly send: (path: string, inputs: readonly RequestInput[]) => Promise<void>
  /** Ends the request that is sent. */
  readonly cancel: () => void
}

/** One request after the other; it ends with the view. */
export function useRequest(): RequestState {
  const [outcome, setOutcome] = useState<Outcome>({ kind: 'none' })
  const ending = useRef<AbortController>(undefined)
  useEffect(() => () => ending.current?.abort(), [])
  return {
    outcome,
    cancel: () => {
      ending.current?.abort()
      setOutcome({ kind: 'none' })
    },
    send: async (path, inputs) => {
      ending.current?.abort()
      const { signal } = (ending.current = new AbortController())
      setOutcome({ kind: 'sending' })
      const next = await infer(path, inputs, signal)
      if (!signal.aborted) setOutcome(next)
    },
  }
}

async function infer(
  path: string,
  inputs: readonly RequestInput[],
  signal: AbortSignal,
): Promise<Outcome> {
  let problem = 'The request cannot be made'
  try {
    // Memory may not hold it.
    const json = inferJson(inputs, true)
    const headers = { [HEADER_LENGTH]: String(new TextEncoder().encode(json).byteLength) }
    const body = toBlob([json, ...inferBytes(inputs)])
    const startedAt = performance.now()
    const response = await call(path, { method: 'POST', headers, body, signal })
    problem = 'The answer cannot be read'
    const bytes = new Uint8Array(await response.arrayBuffer())
    const elapsedMs = performance.now() - startedAt
    const answer = parseAnswer(bytes, response.headers.get(HEADER_LENGTH))
    return { kind: 'answer', answer, elapsedMs, recorded: readSteps(response.headers) }
  } catch (error) {
    const failure =
      error instanceof CallFailure ? error : new CallFailure(0, `${problem}: ${toText(error)}`)
    return { kind: 'failure', failure, recorded: readSteps(failure.headers) }
  }
}

/** What each step took; none without the header. */
function readSteps(headers: Headers): RecordedSteps {
  const spans = z.array(StepSpan).parse(JSON.parse(headers.get('tutti-steps') ?? '[]'))
  return { spans, leftOut: Number(headers.get('tutti-steps-left-out') ?? 0) }
}

function toText(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
