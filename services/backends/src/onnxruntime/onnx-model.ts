import { ServeError } from '@tutti/errors'
import type { ModelSignature } from '@tutti/model-config'
import type { NamedTensor, Parameters, ResponseSink, StepRequest } from '@tutti/tensor'
import type { ExecutionTimes, LoadedModel } from '../engine.ts'
import {
  type BatchContext,
  checkRequest,
  type PlacedRequest,
  packRun,
  planRuns,
  type Run,
  splitOutput,
} from './batch.ts'
import type { SessionInstance } from './session-instance.ts'
import { monotonicNs, readReply, type SlotTensor } from './slot.ts'
import { SlotPool } from './slot-pool.ts'

const NO_PARAMETERS: Parameters = new Map()

interface RunResult {
  readonly outputs: readonly NamedTensor[]
  readonly inferStartNs: number
  readonly inferEndNs: number
}

export interface OnnxModelOptions {
  readonly signature: ModelSignature
  readonly context: BatchContext
  readonly instances: readonly SessionInstance[]
  /** Most bytes that slots waiting for reuse may hold, all instances together. */
  readonly poolBytes: number
}

/** A model loaded by ONNX Runtime: one session and one thread per instance. */
export class OnnxModel implements LoadedModel {
  readonly signature: ModelSignature
  readonly #context: BatchContext
  readonly #instances: readonly SessionInstance[]
  readonly #pool: SlotPool

  constructor(options: OnnxModelOptions) {
    this.signature = options.signature
    this.#context = options.context
    this.#instances = options.instances
    this.#pool = new SlotPool(options.poolBytes)
  }

  async execute(
    requests: readonly StepRequest[],
    sink: ResponseSink,
    o: { readonly instance: number; readonly signal: AbortSignal },
  ): Promise<ExecutionTimes> {
    const instance = this.#instances[o.instance]
    const times = { computeInputNs: 0, computeInferNs: 0, computeOutputNs: 0 }
    if (instance === undefined) {
      const problem = `bug: instance ${o.instance}, want less than ${this.#instances.length}`
      requests.forEach((_, i) => sendError(sink, i, new ServeError('INTERNAL', problem)))
      return times
    }
    for (const run of planRuns(this.#accepted(requests, sink))) {
      const startNs = monotonicNs()
      try {
        const result = await this.#execute(instance, run)
        this.#answer(run, result.outputs, sink)
        times.computeInputNs += result.inferStartNs - startNs
        times.computeInferNs += result.inferEndNs - result.inferStartNs
        times.computeOutputNs += monotonicNs() - result.inferEndNs
      } catch (error) {
        const failure = ServeError.from(error)
        for (const { position } of run) sendError(sink, position, failure)
      }
    }
    return times
  }

  async close(): Promise<void> {
    await Promise.all(this.#instances.map((instance) => instance.close()))
  }

  /** Answers the requests that cannot run, and returns the others. */
  #accepted(requests: readonly StepRequest[], sink: ResponseSink): PlacedRequest[] {
    const accepted: PlacedRequest[] = []
    requests.forEach((request, position) => {
      try {
        checkRequest(this.#context, request)
        accepted.push({ position, request })
      } catch (error) {
        sendError(sink, position, ServeError.from(error))
      }
    })
    return accepted
  }

  async #execute(instance: SessionInstance, run: Run): Promise<RunResult> {
    const packed = packRun(this.#context, run)
    const slot = this.#pool.take(packed.size)
    packed.fill(slot)
    const [back, ...buffers] = await instance.run(slot)
    if (back === undefined) throw new ServeError('INTERNAL', 'bug: a session lost its slot')
    const { outputs, inferStartNs, inferEndNs } = readReply(back)
    let next = 0
    const tensors = outputs.map((tensor) =>
      this.#toTensor(tensor, tensor.byteOffset < 0 ? buffers[next++] : back),
    )
    this.#pool.give(back)
    return { outputs: tensors, inferStartNs, inferEndNs }
  }

  /** Outputs inside the slot are copied out, because the slot is used again; the others are handed on. */
  #toTensor(tensor: SlotTensor, buffer: ArrayBuffer | undefined): NamedTensor {
    const port = this.#context.ports.outputs[tensor.index]
    if (port === undefined || buffer === undefined) {
      throw new ServeError('INTERNAL', `bug: output ${tensor.index} of a session is not known`)
    }
    const { byteOffset, byteLength, dims } = tensor
    const data =
      byteOffset < 0
        ? new Uint8Array(buffer, 0, byteLength)
        : new Uint8Array(buffer.slice(byteOffset, byteOffset + byteLength))
    return { name: port.name, datatype: port.datatype, shape: dims, data }
  }

  #answer(run: Run, outputs: readonly NamedTensor[], sink: ResponseSink): void {
    const split = new Map(
      outputs.map((output) => [output.name, splitOutput(this.#context, run, output)]),
    )
    const all = this.#context.ports.outputs.map(({ name }) => name)
    const responses = run.map(({ request }, i) => {
      const wanted = request.requestedOutputs.length === 0 ? all : request.requestedOutputs
      return wanted.map((name): NamedTensor => {
        const value = split.get(name)?.[i]
        if (value !== undefined) return { name, ...value }
        throw new ServeError(
          'RESPONSE_INVALID',
          `output '${name}' was not produced by model '${this.#context.model}'`,
        )
      })
    })
    // All are made before the first is sent, so that nobody gets a response and then an error.
    run.forEach(({ position }, i) => {
      const final = { index: 0, final: true, outputs: responses[i] ?? [] }
      sink.send(position, { ...final, parameters: NO_PARAMETERS })
    })
  }
}

function sendError(sink: ResponseSink, position: number, error: ServeError): void {
  sink.send(position, { index: 0, final: true, outputs: [], parameters: NO_PARAMETERS, error })
}
