import { ServeError } from '@tutti/errors'
import {
  EMPTY_CONTEXT,
  type InferRequest,
  type RequestContext,
  type ResponseSink,
  type StepResponse,
  type StepTimes,
} from '../execution.ts'
import type { ExecuteOptions, Executor } from '../executor.ts'
import { RESPONSE_WINDOW, ReadyGate } from '../ready-gate.ts'
import { type NamedTensor, outputBytes } from '../tensor.ts'

export { PoisonedMemory } from './poisoned-memory.ts'

/** An FP32 tensor of the values, with the shape given or [n]. */
export function floats(
  name: string,
  values: readonly number[],
  shape: readonly number[] = [values.length],
): NamedTensor {
  const data = new Uint8Array(Float32Array.from(values).buffer)
  return { name, datatype: 'FP32', shape, data }
}

/** The values of FP32 bytes; copied, because a view need not be aligned. */
export function toFloats(data: Uint8Array = new Uint8Array()): Float32Array {
  return new Float32Array(data.slice().buffer)
}

/** A plain request's context: no id, no sequence; `rest` replaces what is to be different. */
export function requestContext(rest: Partial<RequestContext> = {}): RequestContext {
  return { ...EMPTY_CONTEXT, ...rest }
}

/** All responses of a request. */
export async function collect(stream: AsyncIterable<StepResponse>): Promise<StepResponse[]> {
  const all: StepResponse[] = []
  for await (const one of stream) all.push(one)
  return all
}

/** A response as a test sees it: a failure is the last one, with its error. */
export interface RecordedResponse extends StepResponse {
  readonly error?: ServeError
}

/** A sink that keeps what it gets, and is always ready. */
export class RecordedResponses implements ResponseSink {
  readonly responses: RecordedResponse[] = []
  readonly #ended = Promise.withResolvers<readonly RecordedResponse[]>()

  /** Resolves with all responses once the last one is there. */
  get all(): Promise<readonly RecordedResponse[]> {
    return this.#ended.promise
  }

  send({ retain, ...response }: StepResponse): void {
    const isLent = retain !== undefined
    const outputs = response.outputs.map((one) =>
      isLent ? { ...one, data: new Uint8Array(one.data) } : one,
    )
    this.#take({ ...response, outputs })
  }

  fail(error: ServeError, _executed?: 'no' | 'maybe', times?: StepTimes): void {
    const index = this.responses.length
    const last = { index, final: true, outputs: [], parameters: new Map(), error }
    this.#take(times === undefined ? last : { ...last, times })
  }

  #take(response: RecordedResponse): void {
    this.responses.push(response)
    if (response.final) this.#ended.resolve(this.responses)
  }
}

/** Sends what a script gives, counted, as fast as the sink is ready; its throw is the failure. */
export async function sendAll(
  responses: AsyncIterable<Omit<StepResponse, 'index'>>,
  sink: ResponseSink,
): Promise<void> {
  let index = 0
  try {
    for await (const response of responses) {
      sink.send({ index: index++, ...response })
      if (response.final) return
      await sink.ready?.()
    }
    throw new ServeError('INTERNAL', 'bug: a script ended without a final response')
  } catch (error) {
    sink.fail(ServeError.from(error), 'maybe')
  }
}

/**
 * Executes a request, at once, and gives its responses one by one: a reader that takes its time makes the executor wait.
 * The iteration throws the failure.
 */
export function responsesTo(
  executor: Executor,
  request: InferRequest,
  o: ExecuteOptions,
): AsyncGenerator<StepResponse, undefined> {
  const waiting: (StepResponse | ServeError)[] = []
  const [arrived, taken] = [new ReadyGate(), new ReadyGate()]
  const isReady = (): boolean => {
    let bytes = 0
    for (const one of waiting) if (!(one instanceof ServeError)) bytes += outputBytes(one)
    return waiting.length < RESPONSE_WINDOW.responses && bytes < RESPONSE_WINDOW.bytes
  }
  const take = (one: StepResponse | ServeError): void => {
    waiting.push(one)
    arrived.open()
  }
  const ready = (): Promise<void> | undefined => (isReady() ? undefined : taken.wait())
  const fail = (error: ServeError): void => {
    take(error)
    taken.open()
  }
  executor.execute(request, { send: take, fail, ready }, o)
  const read = async function* (): AsyncGenerator<StepResponse, undefined> {
    for (;;) {
      const next = waiting.shift()
      if (next === undefined) {
        await arrived.wait()
        continue
      }
      if (isReady()) taken.open()
      if (next instanceof ServeError) throw next
      yield next
      if (next.final) return
    }
  }
  return read()
}

/** Lends tensors and overwrites each as soon as nothing may read it, so that a reader shows that should have retained it. */
export class Lender {
  /** Lent and not given back by all who retained them. */
  open = 0

  /** @param tensors - copied. @returns them, `retain` for readers that pass them on, and `end`: the time for which they were lent is over. */
  lend(tensors: readonly NamedTensor[]) {
    const copies = tensors.map((tensor) => ({ ...tensor, data: Uint8Array.from(tensor.data) }))
    let readers = 1
    this.open += 1
    const once = (): (() => void) => {
      let isOver = false
      return () => {
        if (isOver) throw new Error('given back twice')
        isOver = true
        readers -= 1
        if (readers > 0) return
        this.open -= 1
        for (const { data } of copies) data.fill(0xee)
      }
    }
    const retain = (): (() => void) => {
      if (readers === 0) throw new Error('retained after it was given back')
      readers += 1
      return once()
    }
    return { tensors: copies, retain, end: once() }
  }

  /** Has an executor's responses lent to its sink: each until `send` returns. */
  sink(inner: ResponseSink): ResponseSink {
    return {
      send: (response) => {
        const { tensors, retain, end } = this.lend(response.outputs)
        inner.send({ ...response, outputs: tensors, retain })
        end()
      },
      fail: (error, executed, times) => inner.fail(error, executed, times),
      ready: () => inner.ready?.(),
    }
  }
}
