import { ServeError } from '@tutti/errors'
import type { ModelSignature } from '@tutti/model-config'
import type { NamedTensor, Parameters, ResponseSink, StepRequest } from '@tutti/tensor'
import type { ExecutionTimes, LoadedModel } from '../engine.ts'
import {
  type BatchContext,
  checkRequest,
  PackedRun,
  type PlacedRequest,
  planRuns,
  type Run,
  splitOutput,
} from './batch.ts'
import type { RunReceiver, RunReply } from './session-handle.ts'
import type { SessionInstance } from './session-instance.ts'
import { monotonicNs } from './slot.ts'

const NO_PARAMETERS: Parameters = new Map()

/** How many executions an instance takes: what its thread may be behind is for the caller to bound by their time. */
const OPEN_EXECUTIONS = 64

export interface OnnxModelOptions {
  readonly signature: ModelSignature
  readonly context: BatchContext
  readonly instances: readonly SessionInstance[]
}

/** A model loaded by ONNX Runtime: one session and one thread per instance. */
export class OnnxModel implements LoadedModel {
  readonly signature: ModelSignature
  readonly openExecutions = OPEN_EXECUTIONS
  readonly #context: BatchContext
  readonly #instances: readonly SessionInstance[]

  constructor(options: OnnxModelOptions) {
    this.signature = options.signature
    this.#context = options.context
    this.#instances = options.instances
  }

  execute(
    requests: readonly StepRequest[],
    sink: ResponseSink,
    o: { readonly instance: number; readonly signal: AbortSignal },
  ): Promise<ExecutionTimes> {
    const instance = this.#instances[o.instance]
    if (instance === undefined) {
      const problem = `bug: instance ${o.instance}, want less than ${this.#instances.length}`
      requests.forEach((_, i) => sendError(sink, i, new ServeError('INTERNAL', problem)))
      return Promise.resolve(NO_TIMES)
    }
    return new Promise((resolve) => {
      const runs = planRuns(this.#accepted(requests, sink))
      if (runs.length === 0) resolve(NO_TIMES)
      const call = new ExecuteCall(this.#context, sink, runs.length, resolve)
      for (const run of runs)
        instance.run(new PackedRun(this.#context, run), new OpenRun(call, run))
    })
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
}

const NO_TIMES: Required<ExecutionTimes> = {
  waitNs: 0,
  computeInputNs: 0,
  computeInferNs: 0,
  computeOutputNs: 0,
}

/** One call of `execute`: what its runs share. */
class ExecuteCall {
  readonly context: BatchContext
  readonly sink: ResponseSink
  readonly times = { ...NO_TIMES }
  #openRuns: number
  readonly #resolve: (times: ExecutionTimes) => void

  constructor(
    context: BatchContext,
    sink: ResponseSink,
    runs: number,
    resolve: (times: ExecutionTimes) => void,
  ) {
    this.context = context
    this.sink = sink
    this.#openRuns = runs
    this.#resolve = resolve
  }

  runEnded(): void {
    this.#openRuns -= 1
    if (this.#openRuns === 0) this.#resolve(this.times)
  }
}

/** Splits what comes back for one run and answers its requests. */
class OpenRun implements RunReceiver {
  readonly #call: ExecuteCall
  readonly #run: Run
  readonly #startNs = monotonicNs()

  constructor(call: ExecuteCall, run: Run) {
    this.#call = call
    this.#run = run
  }

  replied(received: RunReply): void {
    const takenNs = monotonicNs()
    try {
      this.#answer(this.#outputs(received))
    } catch (error) {
      this.#failAll(ServeError.from(error))
    }
    this.#addTimes(received, takenNs)
    this.#call.runEnded()
  }

  failed(error: ServeError): void {
    this.#failAll(error)
    this.#call.runEnded()
  }

  /** What a run waited for its thread is no computing; the way back through the queue of messages is nobody's. */
  #addTimes({ reply, fillNs }: RunReply, takenNs: number): void {
    const { beginNs, inferStartNs, inferEndNs, endNs } = reply
    const { times } = this.#call
    // Further runs of one call wait for its own first one.
    if (times.waitNs === 0) times.waitNs = Math.max(0, beginNs - this.#startNs - fillNs)
    times.computeInputNs += fillNs + inferStartNs - beginNs
    times.computeInferNs += inferEndNs - inferStartNs
    times.computeOutputNs += endNs - inferEndNs + monotonicNs() - takenNs
  }

  #outputs({ reply, slot, apart }: RunReply): NamedTensor[] {
    let next = 0
    return (reply.outputs ?? []).map(({ index, dims, byteOffset, byteLength }) => {
      const port = this.#call.context.ports.outputs[index]
      const buffer = byteOffset < 0 ? apart[next++] : slot
      if (port === undefined || buffer === undefined) {
        throw new ServeError('INTERNAL', `bug: output ${index} of a session is not known`)
      }
      const data = new Uint8Array(buffer, Math.max(0, byteOffset), byteLength)
      return { name: port.name, datatype: port.datatype, shape: dims, data }
    })
  }

  #answer(outputs: readonly NamedTensor[]): void {
    const { context, sink } = this.#call
    const split = outputs.map((output) => splitOutput(context, this.#run, output))
    const responses = this.#run.map(({ request }, i) => {
      if (request.requestedOutputs.length > 0)
        return this.#wanted(request.requestedOutputs, split, i)
      // Everything was asked for, in the model's own order.
      if (split.length < context.ports.outputs.length) {
        const names = context.ports.outputs.map(({ name }) => name)
        return this.#wanted(names, split, i)
      }
      return split.flatMap((values) => values[i] ?? [])
    })
    // All are made before the first is sent, so that nobody gets a response and then an error.
    this.#run.forEach(({ position }, i) => {
      const final = { index: 0, final: true, outputs: responses[i] ?? [] }
      sink.send(position, { ...final, parameters: NO_PARAMETERS })
    })
  }

  #wanted(
    names: readonly string[],
    split: readonly (readonly NamedTensor[])[],
    request: number,
  ): NamedTensor[] {
    return names.map((name) => {
      const value = split.find((values) => values[request]?.name === name)?.[request]
      if (value !== undefined) return value
      throw new ServeError(
        'RESPONSE_INVALID',
        `output '${name}' was not produced by model '${this.#call.context.model}'`,
      )
    })
  }

  #failAll(error: ServeError): void {
    for (const { position } of this.#run) sendError(this.#call.sink, position, error)
  }
}

function sendError(sink: ResponseSink, position: number, error: ServeError): void {
  sink.send(position, { index: 0, final: true, outputs: [], parameters: NO_PARAMETERS, error })
}
