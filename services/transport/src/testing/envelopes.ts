import { type Clock, remainingMs, systemClock } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { Envelope } from '@tutti/protocol'
import {
  EMPTY_CONTEXT,
  type Executor,
  executedBefore,
  type FindExecutor,
  type StepResponse,
} from '@tutti/tensor'
import { type RecordedResponse, responsesTo } from '@tutti/tensor/testing'
import { toEnvelope, toExecuteOptions } from '../endpoint/remote-executor.ts'
import type { FindReplicaExecutor } from '../endpoints.ts'

export const SERVED = { model: 'm', version: 1, revision: 'aaa' } as const

/** An envelope of model m with one UINT8 input `x` of that many elements. */
export function envelope(elements: number, o: Partial<Envelope> = {}): Envelope {
  return {
    requestKey: 'r1',
    ...SERVED,
    step: '',
    attempt: 1,
    context: EMPTY_CONTEXT,
    requestedOutputs: [],
    inputs: [{ name: 'x', datatype: 'UINT8', shape: [elements] }],
    ...o,
  }
}

/** Bytes that differ from their neighbours, and from those of another seed. */
export function tensorBytes(elements: number, seed = 1): Uint8Array {
  const bytes = new Uint8Array(elements)
  for (let i = 0; i < elements; i++) bytes[i] = (i * 31 + (i >> 8) * 7 + seed) & 0xff
  return bytes
}

/** A response with one UINT8 output `y`. */
export function answer(bytes: Uint8Array, o: Partial<RecordedResponse> = {}): RecordedResponse {
  return {
    index: 0,
    final: true,
    outputs: [{ name: 'y', datatype: 'UINT8', shape: [bytes.byteLength], data: bytes }],
    parameters: new Map(),
    ...o,
  }
}

/** Resolves as soon as the claim holds; the test's own time limit is what ends it otherwise. */
export async function until(claim: () => boolean): Promise<void> {
  while (!claim()) await new Promise((resolve) => setTimeout(resolve, 5))
}

/** The bytes of an input. */
export interface TestTensor {
  readonly bytes: Uint8Array
}

/** The handler of a test for a request, which it sees as an envelope. A throw fails the request: nothing was executed. */
export type TestHandler = (
  envelope: Envelope,
  tensors: readonly TestTensor[],
  sink: {
    send(response: RecordedResponse): void
    ready(): Promise<void> | undefined
  },
  o: { readonly signal: Parameters<Executor['execute']>[2]['signal'] },
) => Promise<void> | void

/** Executes requests as a test says. @param clock - that of the deadlines. */
export function executing(handle: TestHandler, clock: Clock = systemClock): FindExecutor {
  return (target) => ({
    execute: (request, sink, o) => {
      const envelope = toEnvelope(target, request, o, remainingMs(o, clock))
      const tensors = request.inputs.map(({ data }) => ({ bytes: data }))
      const send = (response: RecordedResponse): void => {
        const { error, times } = response
        if (error === undefined) sink.send(response)
        else sink.fail(error, executedBefore(error), times)
      }
      const run = async (): Promise<void> =>
        await handle(envelope, tensors, { send, ready: () => sink.ready?.() }, o)
      run().catch((error: unknown) => sink.fail(ServeError.from(error), 'no'))
    },
  })
}

/** Has an executor execute what an envelope says. The iteration throws the failure. */
export function sendEnvelope(
  find: FindReplicaExecutor,
  to: { readonly replica: string },
  envelope: Envelope,
  tensors: readonly TestTensor[],
  { signal }: { readonly signal: AbortSignal },
): AsyncIterable<StepResponse> {
  const { context, requestedOutputs } = envelope
  const inputs = envelope.inputs.map((input, i) => {
    return { ...input, data: tensors[i]?.bytes ?? new Uint8Array() }
  })
  const options = toExecuteOptions(envelope, { signal, clock: systemClock })
  return responsesTo(find(envelope, to.replica), { context, requestedOutputs, inputs }, options)
}
