import type { ServerDuplexStream } from '@grpc/grpc-js'
import { type Clock, isTimeOver } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import {
  decodeInferRequest,
  encodeStreamResponse,
  type InferRequestMessage,
  NO_PARAMETERS,
  type StreamResponseParts,
  toGrpcStatus,
} from '@tutti/protocol'
import type { Parameters } from '@tutti/tensor'
import type { InferResponse } from '../inference-backend.ts'
import {
  onlyResponse,
  type PreparedInfer,
  prepareInfer,
  requireLive,
  toAnswer,
} from './infer-call.ts'
import type { LiveCall } from './live-call.ts'
import { isRefusedBeforeWork } from './refused-before-work.ts'

/** Requests of one stream that are worked on at the same time; further ones are not read until one is answered. */
const MAX_OUTSTANDING = 64
/** Bytes of responses that may wait for the client before the models are held up. */
const MAX_UNSENT_BYTES = 1024 * 1024

type StreamCall = ServerDuplexStream<Buffer, Buffer>

export interface InferStreamOptions {
  readonly call: StreamCall
  readonly live: LiveCall
  readonly maxBytes: number
  readonly clock: Clock
  /** `triton_grpc_error`: the first error of a model ends the stream instead of standing in it. */
  readonly isGrpcError: boolean
  readonly onError: (error: ServeError) => void
}

/**
 * One ModelStreamInfer. Requests are worked on at the same time; models that give one response are answered in the order
 * of the requests, decoupled models as their responses come (triton-semantics 4.8).
 */
export class InferStreamCall {
  readonly #o: InferStreamOptions
  /** Resolves when every ordered request so far is answered. */
  #turn: Promise<void> = Promise.resolve()
  #outstanding = 0
  #unsentBytes = 0
  #isEnded = false
  #isFailed = false
  #isStopping = false
  /** Of messages that the client has not taken: ends the wait for it. */
  readonly #untaken = new Set<() => void>()

  constructor(o: InferStreamOptions) {
    this.#o = o
    o.live.whenClosed(() => {
      for (const end of this.#untaken) end()
    })
  }

  /** Begins to read requests. */
  start(): void {
    const { call, live } = this.#o
    live.failWith((error) => this.#fail(error))
    live.whenStopping(() => {
      this.#isStopping = true
      call.pause()
      this.#finishIfDone()
    })
    call.on('data', (bytes: Buffer) => this.#accept(bytes))
    call.on('end', () => {
      this.#isEnded = true
      this.#finishIfDone()
    })
  }

  #accept(bytes: Buffer): void {
    if (this.#isFailed) return
    this.#outstanding += 1
    if (this.#outstanding >= MAX_OUTSTANDING) this.#o.call.pause()
    const turn = this.#turn
    let answer: Promise<void>
    try {
      this.#o.live.holdMessage(bytes.byteLength)
      answer = this.#answer(decodeInferRequest(bytes), turn)
    } catch (error) {
      // Without a message there is no id to answer to, so the stream is at fault as a whole.
      this.#o.live.fail(ServeError.from(error))
      return
    }
    void answer
      .catch((error: unknown) => this.#o.live.fail(ServeError.from(error)))
      .finally(() => this.#release(bytes.byteLength))
  }

  #release(bytes: number): void {
    this.#o.live.releaseMessage(bytes)
    this.#outstanding -= 1
    if (!this.#isEnded && !this.#isStopping && this.#o.call.isPaused()) this.#o.call.resume()
    this.#finishIfDone()
  }

  #finishIfDone(): void {
    if (this.#outstanding > 0 || this.#isFailed) return
    if (this.#isEnded) {
      this.#o.live.answered()
      this.#o.call.end()
    } else if (this.#isStopping) {
      this.#o.live.fail(
        new ServeError(
          'SERVER_STOPPING',
          'GRPC server is shutting down and has stopped accepting new requests.',
        ),
      )
    }
  }

  /** Never rejects for an error of the request itself: that is an answer. */
  #answer(message: InferRequestMessage, turn: Promise<void>): Promise<void> {
    const prepared = this.#prepare(message)
    if (!(prepared instanceof ServeError) && prepared.model.isDecoupled) {
      return this.#stream(message, prepared)
    }
    const answer = this.#one(message, prepared, turn)
    this.#turn = answer
    return answer
  }

  #prepare(message: InferRequestMessage): PreparedInfer | ServeError {
    try {
      const { backend } = this.#o.live
      requireLive(backend)
      const model = backend.resolve(message.modelName, message.modelVersion)
      return prepareInfer(message, model, this.#o.maxBytes)
    } catch (error) {
      return ServeError.from(error)
    }
  }

  async #one(
    message: InferRequestMessage,
    prepared: PreparedInfer | ServeError,
    turn: Promise<void>,
  ): Promise<void> {
    // What waits for its turn is counted, so it is encoded by now and nothing else of it is kept.
    const answer = prepared instanceof ServeError ? prepared : await this.#encodeOnly(prepared)
    await turn
    if (answer instanceof ServeError) await this.#sendError(message, answer)
    else await this.#send(answer)
  }

  /** Executes a request for its only response. A function of its own: one that waits on would keep the tensors. */
  async #encodeOnly(prepared: PreparedInfer): Promise<Buffer | ServeError> {
    try {
      const responses = prepared.model.infer(prepared.request, this.#o.live.context)
      const response = await onlyResponse(responses)
      return this.#encode({ errorMessage: '', response: toFinalAnswer(response, prepared, true) })
    } catch (error) {
      return ServeError.from(error)
    }
  }

  async #stream(message: InferRequestMessage, prepared: PreparedInfer): Promise<void> {
    try {
      const responses = prepared.model.infer(prepared.request, this.#o.live.context)
      for await (const response of responses) {
        const isEmpty = response.final && response.outputs.length === 0
        if (isEmpty && !prepared.isEmptyFinalWanted) return
        const answer = toFinalAnswer(response, prepared, response.final)
        await this.#send(this.#encode({ errorMessage: '', response: answer }))
        if (response.final) return
      }
    } catch (error) {
      await this.#sendError(message, ServeError.from(error))
    }
  }

  async #sendError(message: InferRequestMessage, error: ServeError): Promise<void> {
    this.#o.onError(error)
    const { live, clock, isGrpcError } = this.#o
    const isModelError = !isRefusedBeforeWork(error)
    // The model's timer may fire before the call's. The time is over for the stream as a whole, not for this request alone.
    const isLate = error.reason === 'DEADLINE_EXCEEDED' && isTimeOver(live.context, clock)
    if (isLate || (isGrpcError && isModelError)) return live.fail(error)
    const response = {
      modelName: isModelError ? message.modelName : '',
      modelVersion: isModelError ? message.modelVersion : '',
      id: message.id,
      parameters: isModelError ? finalFlag(NO_PARAMETERS, true) : NO_PARAMETERS,
      outputs: [],
    }
    await this.#send(this.#encode({ errorMessage: error.message, response }))
  }

  /** The message, counted until it is sent. @throws ServeError OVERLOADED */
  #encode(message: StreamResponseParts): Buffer {
    const bytes = encodeStreamResponse(message)
    this.#o.live.holdAnswer(bytes.byteLength)
    return bytes
  }

  /** Resolves at once while the client keeps up, else once it has taken the message or is gone. */
  async #send(bytes: Buffer): Promise<void> {
    const { call, live } = this.#o
    if (live.isClosed || this.#isFailed) return live.releaseMessage(bytes.byteLength)
    if (this.#unsentBytes === 0) live.offered()
    this.#unsentBytes += bytes.byteLength
    const taken = new Promise<void>((resolve) => {
      this.#untaken.add(resolve)
      call.write(bytes, () => {
        this.#untaken.delete(resolve)
        this.#unsentBytes -= bytes.byteLength
        live.releaseMessage(bytes.byteLength)
        if (this.#unsentBytes === 0) live.allTaken()
        else live.offered()
        resolve()
      })
    })
    if (this.#unsentBytes > MAX_UNSENT_BYTES) await taken
  }

  /** Ends the stream with a status; what was sent before it still arrives. */
  #fail(error: ServeError): void {
    if (this.#isFailed) return
    this.#isFailed = true
    this.#o.call.emit('error', toGrpcStatus(error))
  }
}

function finalFlag(parameters: Parameters, isFinal: boolean): Parameters {
  return new Map([...parameters, ['triton_final_response', { kind: 'bool', value: isFinal }]])
}

function toFinalAnswer(
  response: InferResponse,
  prepared: PreparedInfer,
  isFinal: boolean,
): InferResponse {
  const answer = toAnswer(response, prepared)
  return { ...answer, parameters: finalFlag(answer.parameters, isFinal) }
}
