import { ServeError } from '@tutti/errors'
import { type ApartTensor, decodeApartRequest, type InferRequestMessage } from '@tutti/protocol'
import { decorateModel, type ResolvedModel } from '@tutti/serving'
import { Loan, type MemoryPart, type ResponseSink } from '@tutti/tensor'

/** The large tensors of one message, each in its own memory. The holder of the message calls `end` to free this memory. */
export class ApartTensors {
  readonly tensors: ApartTensor[] = []
  readonly #parts: MemoryPart[] = []
  readonly #loan = new Loan(() => this.#parts.forEach((part) => part.free()))
  #isOver = false

  get byteLength(): number {
    return this.tensors.reduce((sum, { bytes }) => sum + bytes.byteLength, 0)
  }

  add(at: number, part: MemoryPart): void {
    this.tensors.push({ at, bytes: part.bytes })
    this.#parts.push(part)
  }

  /**
   * Decodes the message with these tensors.
   *
   * @param bytes - the message without the tensors.
   * @throws ServeError as `decodeInferRequest`.
   */
  decode(bytes: Uint8Array): InferRequestMessage {
    return decodeApartRequest(bytes, this.tensors)
  }

  /**
   * Wraps a model so that a request keeps the tensors until its final response or error, even if `end` is called before. A
   * request that begins after `end` fails with CANCELLED.
   */
  lendTo(model: ResolvedModel): ResolvedModel {
    const { retain } = this.#loan
    return decorateModel(model, (request, sink, o) => {
      // A request that waited has lost its client.
      if (this.#isOver) return sink.fail(new ServeError('CANCELLED', 'the call is over'), 'no')
      const giveBack = retain()
      const held: ResponseSink = {
        // The response may lie in the request.
        send: (response) => {
          sink.send(response)
          if (response.final) giveBack()
        },
        fail: (error, executed, times) => {
          sink.fail(error, executed, times)
          giveBack()
        },
        ready: () => sink.ready?.(),
      }
      model.execute({ ...request, retain }, held, o)
    })
  }

  /** Frees the tensors as soon as no request of a model keeps them. A second call does nothing. */
  end(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#loan.end()
  }
}
