import { monotonicNs } from '@tutti/chassis'
import { bug, ServeError } from '@tutti/errors'
import type { NamedTensor, Parameters, StepRequest } from '@tutti/tensor'
import type { BatchOptions, EngineRequest, ExecutionTimes, LoadedModel } from '../engine.ts'
import { joinInputs, joinRequests, splitBatch } from './batches.ts'
import type { OnnxContext } from './onnx-context.ts'
import type { OrtSession } from './ort-session.ts'
import { scatter } from './ragged.ts'
import { checkStrings, refuseBatch, refuseInput, refuseMissing, refuseName } from './run-errors.ts'
import type { InstanceThread } from './run-threads.ts'
import type { RunInput, RunReply, SessionRun } from './session-contract.ts'

const NO_PARAMETERS: Parameters = new Map()

/** Model loaded by ONNX Runtime. Its instances on one device share a session. */
export class OnnxModel implements LoadedModel {
  /** Most executions that an instance takes at a time. The caller bounds how long they may take together. */
  readonly openExecutions = 64
  readonly #context: OnnxContext
  readonly #instances: readonly OrtInstance[]
  readonly #release: () => Promise<void>
  #closing: Promise<void> | undefined

  /** Makes a model of instances that have started. @param release - frees the sessions; called once no instance runs. */
  constructor(
    context: OnnxContext,
    instances: readonly OrtInstance[],
    release: () => Promise<void>,
  ) {
    this.#context = context
    this.#instances = instances
    this.#release = release
  }

  execute(batch: readonly EngineRequest[], o: BatchOptions): Promise<ExecutionTimes> {
    const instance = this.#instances[o.instance]
    if (instance === undefined) {
      const error = bug(`instance ${o.instance}, want less than ${this.#instances.length}`)
      for (const { sink } of batch) sink.fail(error, 'no')
      return Promise.resolve(NO_TIMES)
    }
    return new Promise((resolve) => {
      const accepted = this.#accepted(batch)
      const { ragged } = this.#context
      const runs = accepted.length > 1 ? joinRequests(accepted, ragged) : accepted.map((r) => [r])
      if (runs.length === 0) resolve(NO_TIMES)
      const call = { resolve, openRuns: runs.length, times: { ...NO_TIMES } }
      const opened = runs.map((together) => new OpenRun(this.#context, call, together))
      for (const run of opened) instance.run(run, o)
    })
  }

  close(): Promise<void> {
    const instances = Promise.all(this.#instances.map((instance) => instance.close()))
    this.#closing ??= instances.then(() => this.#release())
    return this.#closing
  }

  /** Answers the requests that cannot run, and returns the others. */
  #accepted(batch: readonly EngineRequest[]): readonly EngineRequest[] {
    return batch.filter(({ request, sink }) => {
      try {
        checkRequest(this.#context, request)
        return true
      } catch (error) {
        sink.fail(ServeError.from(error), 'maybe')
        return false
      }
    })
  }
}

/**
 * Instance that runs one execution at a time, on a session that it shares. Short runs block the calling thread; others go to a
 * run thread.
 */
export class OrtInstance {
  readonly #session: OrtSession
  readonly #thread: InstanceThread
  #isClosing = false

  constructor(session: OrtSession, thread: InstanceThread) {
    this.#session = session
    this.#thread = thread
  }

  /** Executes a run after the earlier runs of the instance. Errors go to the run. */
  run(run: SessionRun, o: BatchOptions): void {
    try {
      if (this.#isClosing) throw new ServeError('ENGINE_STOPPED', 'the model is being unloaded')
      const opened = this.#session.open(run)
      // Behind runs on the thread it would be answered before them.
      const isHere = this.#thread.openRuns === 0 && this.#session.isShort(opened)
      if (isHere) this.#session.runHere(opened)
      else this.#thread.run(opened, o)
    } catch (error) {
      run.done(ServeError.from(error))
    }
  }

  /** Takes no further run, and resolves when the open runs are done. */
  close(): Promise<void> {
    this.#isClosing = true
    return this.#thread.idle()
  }
}

/** @throws ServeError for what would fail the whole run: it must fail this request alone. */
function checkRequest(context: OnnxContext, request: StepRequest): void {
  const { model, inputs, outputs, maxStrings } = context
  for (const tensor of request.inputs) {
    const port = inputs.get(tensor.name)
    if (port?.datatype !== tensor.datatype) refuseInput(model, tensor, port)
    if (port.datatype === 'BYTES') checkStrings(model, tensor, maxStrings)
  }
  for (const name of request.requestedOutputs) {
    if (!outputs.has(name)) refuseName(model, 'output', name)
  }
}

/** Builds the inputs of a run with one request. */
function toRunInputs({ inputs }: OnnxContext, request: StepRequest): RunInput[] {
  return request.inputs.map((tensor) => {
    const { index = 0, isVector } = inputs.get(tensor.name) ?? {}
    return { index, dims: isVector ? [] : tensor.shape, parts: [tensor] }
  })
}

const NO_TIMES = { waitNs: 0, computeInputNs: 0, computeInferNs: 0, computeOutputNs: 0 }

/** One call of `execute`: what its runs share. */
interface ExecuteCall {
  readonly resolve: (times: ExecutionTimes) => void
  readonly times: Required<{ -readonly [K in keyof ExecutionTimes]: number }>
  openRuns: number
}

/** Requests that go through the model together: joins their inputs, splits what comes back and answers them. */
class OpenRun implements SessionRun {
  readonly inputs: readonly RunInput[]
  readonly outputs: readonly number[]
  readonly #context: OnnxContext
  readonly #call: ExecuteCall
  readonly #requests: readonly EngineRequest[]

  constructor(context: OnnxContext, call: ExecuteCall, requests: readonly EngineRequest[]) {
    this.#context = context
    this.#call = call
    this.#requests = requests
    const [first, ...others] = requests
    const isAlone = others.length === 0 && context.ragged === undefined
    this.inputs =
      isAlone && first ? toRunInputs(context, first.request) : joinInputs(context, requests)
    this.outputs = this.#wantedOutputs()
  }

  done(result: RunReply | ServeError): void {
    const takenNs = monotonicNs()
    const { times } = this.#call
    try {
      if (result instanceof ServeError) throw result
      this.#answer(result)
    } catch (error) {
      for (const { sink } of this.#requests) sink.fail(ServeError.from(error), 'maybe')
    }
    if (!(result instanceof ServeError)) result.loan?.end()
    if (!(result instanceof ServeError)) this.#addTimes(result, takenNs)
    this.#call.openRuns -= 1
    if (this.#call.openRuns === 0) this.#call.resolve(times)
  }

  /** Adds the times of a run: its wait for its thread is no computing; the way back counts nowhere. */
  #addTimes({ waitNs, inputNs, inferNs, outputNs }: RunReply, takenNs: number): void {
    const { times } = this.#call
    // Further runs of one call wait for its own first one.
    if (times.waitNs === 0) times.waitNs = waitNs
    times.computeInputNs += inputNs
    times.computeInferNs += inferNs
    times.computeOutputNs += outputNs + monotonicNs() - takenNs
  }

  #wantedOutputs(): readonly number[] {
    const { outputs, outputIndexes } = this.#context
    const wanted = new Set<number>()
    for (const { request } of this.#requests) {
      if (request.requestedOutputs.length === 0) return outputIndexes
      for (const name of request.requestedOutputs) wanted.add(outputs.get(name)?.index ?? 0)
    }
    return [...wanted]
  }

  #answer({ outputs, loan }: RunReply): void {
    const { model, outputNames } = this.#context
    const split = outputs.map((output) => this.#split(output))
    const responses = this.#requests.map(({ request: { requestedOutputs: asked } }, i) => {
      const names = asked.length > 0 ? asked : outputNames
      const find = (name: string) => split.find((parts) => parts[i]?.name === name)?.[i]
      return names.map((name) => find(name) ?? refuseMissing(model, name))
    })
    // All are made before the first is sent, so that no request gets a response and then an error.
    this.#requests.forEach(({ sink }, i) => {
      const lent = loan && { retain: loan.retain }
      const all = { index: 0, final: true, parameters: NO_PARAMETERS, ...lent }
      sink.send({ ...all, outputs: responses[i] ?? [] })
    })
  }

  /**
   * Splits an output along dimension 0: a view for each request. @throws ServeError RESPONSE_INVALID if that is not the batch.
   */
  #split(output: NamedTensor): readonly NamedTensor[] {
    const { model, outputs, ragged } = this.#context
    const scattered = ragged && scatter(ragged, output, this.#requests)
    if (scattered !== undefined) return scattered
    let total = 0
    for (const { request } of this.#requests) total += request.batchSize
    const isVector = outputs.get(output.name)?.isVector
    if (total === 0) return [isVector ? { ...output, shape: [1] } : output]
    if (output.shape[0] !== total) refuseBatch(model, output, total)
    if (this.#requests.length === 1) return [output]
    const sizes = this.#requests.map(({ request }) => request.batchSize)
    return splitBatch(output, sizes)
  }
}
