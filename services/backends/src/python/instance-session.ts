import { monotonicNs } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { NamedTensor, StepRequest, StepResponse } from '@tutti/tensor'
import type { EngineRequest } from '../engine.ts'
import { Borrowings } from './borrowings.ts'
import { executeFrame, packTensors } from './execute-frame.ts'
import {
  badFrame,
  FrameMetaReader,
  FrameWriter,
  type InstanceFrame,
  OP,
  plainFrame,
  type WireResponse,
} from './frames.ts'
import { InstanceMemory, type TakenResponses } from './instance-memory.ts'
import {
  type FrameReceiver,
  InstanceProcess,
  type InstanceProcessOptions,
} from './instance-process.ts'
import { type ExecutionEvents, OpenExecution, type ResponseContent } from './open-execution.ts'
import { parseObject } from './wire-response.ts'

/** Response for a process: tensors, the final flag, and further fields as members of a JSON object. */
export interface DescribedResponse {
  readonly outputs: readonly NamedTensor[]
  readonly isFinal: boolean
  readonly members: readonly string[]
  /** Function that retains the outputs, as `retain` of Lent. */
  readonly retain: StepResponse['retain']
}

/** Taker of frames that belong to no execution. */
export interface FrameTaker {
  /**
   * Takes a frame.
   *
   * @returns false if the frame is not for this taker, true if it is done, or a promise that resolves when its tensors are
   * copied.
   * @throws ServeError MALFORMED_MESSAGE
   */
  take(frame: InstanceFrame, session: InstanceSession): boolean | Promise<void>
  /** Called when the process has ended. */
  close(): void
}

export interface InstanceSessionOptions extends Omit<InstanceProcessOptions, 'receiver'> {
  readonly isDecoupled: boolean
  readonly takers: readonly FrameTaker[]
  /** Memory that an idle instance keeps, in bytes. */
  readonly idleBytes: number
}

/** Process of an instance, with its open executions. */
export class InstanceSession implements FrameReceiver {
  readonly #options: InstanceSessionOptions
  readonly #executions = new Map<number, OpenExecution>()
  readonly #memory: InstanceMemory
  readonly #borrowings = new Borrowings((frame) => this.process.send(frame))
  readonly process: InstanceProcess
  #nextId = 1
  #nextKey = 1
  /** Set while the model is asked whether it is ready: one question is open at a time. */
  #asked: PromiseWithResolvers<boolean> | undefined
  #onEnded: ((problem: string) => void) | undefined
  #finalizeError: string | undefined
  #endError: ServeError | undefined

  /** Gives the process its task. Until the process is ready it can only be killed. */
  constructor(o: InstanceSessionOptions) {
    this.#options = o
    this.process = new InstanceProcess({ ...o, receiver: this })
    this.#memory = new InstanceMemory(() => this.process.arena, o.idleBytes)
  }

  /** Calls `callback` when the process has ended, before its executions fail; at once if it has ended already. */
  whenEnded(callback: (problem: string) => void): void {
    if (this.#endError === undefined) this.#onEnded = callback
    else callback(this.#endError.message)
  }

  execute(batch: readonly EngineRequest[], o: ExecutionEvents): OpenExecution {
    const startNs = monotonicNs()
    this.#memory.cancelTrim()
    const requests = batch.map(({ request }) => request)
    const inputs = requests.map((request) => request.inputs)
    const id = this.#nextId++
    const { arena } = this.process
    const borrow = (i: number, data: Uint8Array): number | undefined => {
      const request = requests[i]
      return request && this.#borrowings.borrow(id, request, data)
    }
    const packed = packTensors(inputs, arena, arena && borrow)
    const scratch = this.#memory.allocateScratch()
    const firstKey = this.#nextKey
    this.#nextKey += requests.length
    let copyNs = monotonicNs() - startNs
    // If the process ends, its requests are answered at once, and another thread may still read their inputs.
    const giveBacks = packed.copied && requests.flatMap(({ retain }) => retain?.() ?? [])
    const copied = packed.copied?.finally(() => {
      copyNs = monotonicNs() - startNs
      for (const giveBack of giveBacks ?? []) giveBack()
    })
    const execution = new OpenExecution({
      firstKey,
      batch,
      isDecoupled: this.#options.isDecoupled,
      region: packed.region,
      scratch,
      copyNs: () => copyNs,
      returned: o.returned,
      ended: (times) => {
        this.#executions.delete(id)
        this.#memory.trimLater()
        o.ended({ ...times, computeInputNs: times.computeInputNs + copyNs })
      },
    })
    this.#executions.set(id, execution)
    if (this.#endError !== undefined) execution.fail(this.#endError)
    else
      this.process.sendAfter(copied, ...executeFrame({ id, firstKey, requests, packed, scratch }))
    return execution
  }

  /** Tells the model that the caller of a request has left. */
  cancel(execution: OpenExecution, position: number): void {
    const key = execution.cancel(position)
    if (key !== undefined) this.process.send(plainFrame(OP.CANCEL, key))
  }

  /** Finds the execution of an open request, and the request's position in it. @param key - of the request. */
  findOpen(key: number): readonly [OpenExecution, number] | undefined {
    for (const execution of this.#executions.values()) {
      const position = execution.positionOf(key)
      if (position !== undefined) return [execution, position]
    }
    return undefined
  }

  /** Executions that have not ended, in the order in which they began. */
  get open(): readonly OpenExecution[] {
    return [...this.#executions.values()]
  }

  /**
   * Finds the requests for which a model calls another model: those that it names and whose callers still wait. If no caller
   * waits, all of them are returned, so that the call ends at once.
   *
   * @param keys - as the process wrote them.
   * @returns none if the model names none, or if their executions are over.
   */
  findCallers(keys: unknown): readonly StepRequest[] {
    const open = (Array.isArray(keys) ? keys : []).flatMap((key: unknown) => {
      const found = typeof key === 'number' ? this.findOpen(key) : undefined
      return found === undefined ? [] : [found]
    })
    const wanted = open.flatMap(([execution, position]) => execution.wanted(position) ?? [])
    if (wanted.length > 0) return wanted
    return open.flatMap(([execution, position]) => execution.o.batch[position]?.request ?? [])
  }

  /** Finds the request with this key, as the process wrote it; undefined if nobody waits for it. */
  findCaller(key: unknown): StepRequest | undefined {
    const found = typeof key === 'number' ? this.findOpen(key) : undefined
    return found?.[0].wanted(found[1])
  }

  /**
   * Gives the tensors of a call to `use`. Large ones are lent in the arena, unless the model uses them too; then they are copied.
   *
   * @returns a promise that resolves when large ones are copied; undefined if all are copied already.
   * @throws ServeError MALFORMED_MESSAGE
   */
  takeInputs(
    record: WireResponse,
    frame: InstanceFrame,
    use: (inputs: readonly NamedTensor[], retain: StepResponse['retain']) => void,
  ): Promise<void> | undefined {
    const parts = { lent: [], copied: this.open.map(({ o }) => o.region) }
    const taken = this.#memory.take([record], frame, parts)
    return whenCopied(taken, ([content]) => use(content?.outputs ?? [], content?.retain))
  }

  /** Sends a response of another model to the process that called it. */
  sendResponse(id: number, { outputs, isFinal, members, retain }: DescribedResponse): void {
    const { arena } = this.process
    if (this.#endError !== undefined) return
    const packed = packTensors([outputs], arena)
    const all = [...members]
    if (packed.region !== undefined) {
      this.#memory.retain(packed.region)
      all.push(`"region":[${packed.region.offset},${packed.region.size}]`)
    }
    const writer = new FrameWriter()
    writer.response(
      isFinal ? 1 : 0,
      packed.places[0] ?? [],
      all.length === 0 ? '' : `{${all.join(',')}}`,
    )
    const head = writer.finish(OP.INFER_RESPONSE, id, packed.payloadBytes)
    const giveBack = retain?.()
    const copied = packed.copied?.finally(giveBack)
    // The payload waits in the pipe to the process.
    const payload = retain && packed.payload.map((data) => new Uint8Array(data))
    if (copied === undefined) giveBack?.()
    this.process.sendAfter(copied, head, ...(payload ?? packed.payload))
  }

  /** Answers a question of the process. */
  reply(id: number, answer: unknown): void {
    if (this.#endError === undefined) this.process.reply(id, answer)
  }

  /**
   * Asks the model to finalize, and waits for the end of its process.
   *
   * @returns the text of the model's exception, if it raised one.
   */
  async finalize(): Promise<string | undefined> {
    this.process.send(plainFrame(OP.FINALIZE, 0))
    await this.process.ended
    return this.#finalizeError
  }

  /** Asks the model whether it is ready; false if its process ends first. Only models that report their own readiness answer. */
  isReady(): Promise<boolean> {
    if (this.#endError !== undefined) return Promise.resolve(false)
    if (this.#asked === undefined) {
      this.#asked = Promise.withResolvers()
      this.process.send(plainFrame(OP.ASK_READY, 0))
    }
    return this.#asked.promise
  }

  onFrame(frame: InstanceFrame): Promise<void> | undefined {
    if (frame.op === OP.RESULT) return this.#onResult(frame)
    if (frame.op === OP.SEND) return this.#onSend(frame)
    if (frame.op === OP.GROW) this.#onGrow(frame)
    else if (frame.op === OP.RELEASE) this.#memory.release(frame.id)
    else if (frame.op === OP.RETURNED) {
      this.#borrowings.returned(frame.id, this.#isExecuting(frame.id))
    } else if (frame.op === OP.MAPPED) {
      this.#borrowings.answered(frame.id, parseObject(frame.meta.toString())['problem'])
    } else if (frame.op === OP.ABANDONED) this.#onAbandoned(frame.id)
    else if (frame.op === OP.FINALIZED) this.#onFinalized(parseObject(frame.meta.toString()))
    else if (frame.op === OP.IS_READY)
      this.#settleReady(parseObject(frame.meta.toString())['ready'] === true)
    else return this.#onOther(frame)
    return undefined
  }

  #onOther(frame: InstanceFrame): Promise<void> | undefined {
    for (const taker of this.#options.takers) {
      const taken = taker.take(frame, this)
      if (taken !== false) return taken === true ? undefined : taken
    }
    throw badFrame(`operation ${frame.op}`)
  }

  onEnd(error: ServeError): void {
    this.#endError = error
    this.#memory.cancelTrim()
    this.#borrowings.close()
    this.#settleReady(false)
    for (const taker of this.#options.takers) taker.close()
    this.#onEnded?.(error.message)
    for (const execution of this.#executions.values()) execution.fail(error)
  }

  /** Tells whether the process has not reported the result yet. */
  #isExecuting(id: number): boolean {
    return this.#executions.get(id)?.hasReturned === false
  }

  #onFinalized({ error }: Readonly<Record<string, unknown>>): void {
    if (typeof error === 'string') this.#finalizeError = error
  }

  #settleReady(answer: boolean): void {
    this.#asked?.resolve(answer)
    this.#asked = undefined
  }

  #onResult(frame: InstanceFrame): Promise<void> | undefined {
    const startNs = monotonicNs()
    const result = new FrameMetaReader(frame.meta).result()
    const execution = this.#executions.get(frame.id)
    if (execution === undefined || execution.hasReturned)
      throw badFrame('a result for no execution')
    if (result.responses.length !== execution.o.batch.length) {
      throw badFrame(
        `${result.responses.length} responses for ${execution.o.batch.length} requests`,
      )
    }
    const { region, scratch } = execution.o
    const { isRetained } = result
    const parts = {
      lent: isRetained ? [scratch] : [scratch, region],
      copied: isRetained ? [region] : [],
    }
    const taken = this.#memory.take(result.responses, frame, parts)
    return whenCopied(taken, (contents) => {
      if (isRetained && region !== undefined) this.#memory.retain(region)
      if (result.writesLent) this.#borrowings.stop()
      if (!result.keepsLent) this.#borrowings.giveBack(frame.id)
      this.#memory.learn(result.responses)
      const times = {
        computeInputNs: result.inputNs,
        computeInferNs: result.inferNs,
        computeOutputNs: result.outputNs + monotonicNs() - startNs,
      }
      contents.forEach((content, position) => {
        if (content !== undefined) execution.answer(position, content)
        else if (result.responses[position]?.isAgain === true) execution.again(position)
      })
      execution.returned(times)
    })
  }

  #onSend(frame: InstanceFrame): Promise<void> | undefined {
    const startNs = monotonicNs()
    const { response, inputNs, outputNs } = new FrameMetaReader(frame.meta).sent()
    const found = this.findOpen(frame.id)
    const parts = { lent: [], copied: [found?.[0].o.region] }
    const taken = this.#memory.take([response], frame, parts)
    return whenCopied(taken, ([content]) => {
      found?.[0].count(found[1], inputNs, outputNs + monotonicNs() - startNs)
      this.#onSent(frame.id, content, response.isFinal)
    })
  }

  #onSent(key: number, content: ResponseContent | undefined, isFinal: boolean): void {
    const found = this.findOpen(key)
    // The error is the request's last answer: what the model still has for it has no reader.
    if (found !== undefined && content?.error !== undefined && !isFinal) this.cancel(...found)
    found?.[0].stream(found[1], content, isFinal)
    if (isFinal) return
    // The next response may come when the reader is ready for it. What is no longer read is dropped: the model goes on.
    const credit = (): void => this.process.send(plainFrame(OP.CREDIT, key))
    const ready = found?.[0].ready(found[1])
    if (ready === undefined) credit()
    else void ready.then(credit)
  }

  #onGrow(frame: InstanceFrame): void {
    const { bytes } = parseObject(frame.meta.toString())
    if (typeof bytes !== 'number' || !(bytes > 0))
      throw badFrame(`a request for ${String(bytes)} bytes`)
    const part = this.#memory.grow(bytes)
    this.process.send(plainFrame(OP.REGION, frame.id, { offset: part?.offset ?? null }))
  }

  #onAbandoned(key: number): void {
    const found = this.findOpen(key)
    const problem = `model '${this.#options.name}' let go of a request without a final response`
    found?.[0].answer(found[1], {
      outputs: [],
      parameters: new Map(),
      error: new ServeError('RESPONSE_INVALID', problem),
    })
  }
}

/** Gives the contents of a frame to `use`, which retains what is read after it. */
function whenCopied(
  { contents, copied, end }: TakenResponses,
  use: (contents: TakenResponses['contents']) => void,
): Promise<void> | undefined {
  const act = (): void => {
    try {
      use(contents)
    } finally {
      end()
    }
  }
  if (copied !== undefined) {
    return copied.then(act, (error: unknown) => {
      end()
      throw error
    })
  }
  act()
  return undefined
}
