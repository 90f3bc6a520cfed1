import { type CallScope, isTimeOver, openCallScope, signalError } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { holds, type PlanLoop } from '@tutti/graph'
import {
  type Executed,
  formatShape,
  fromConfigDatatype,
  type NamedTensor,
  NO_TIMES,
  type ResponseSink,
  type StepResponse,
  type StepTimes,
  shapeMatches,
} from '@tutti/tensor'
import { addTimes } from './add-times.ts'
import { HeldOutputs } from './held-outputs.ts'
import { lendOn } from './lend-tensors.ts'
import type { ModelCall } from './model-call.ts'
import { noteStep } from './note-step.ts'
import type { RequestDependencies } from './request-dependencies.ts'
import type { StepCall } from './step-call.ts'
import { contextWithin, locateError } from './within.ts'

/** Calls again with what the call before made, until a condition holds or there were enough iterations, and gives out the last outputs. */
export function withLoop(loop: PlanLoop | undefined, next: StepCall): StepCall {
  if (loop === undefined) return next
  return (o, call, sink) => new LoopedCall({ o, call, sink, loop, next }).begin()
}

class LoopedCall {
  readonly #dependencies: RequestDependencies
  readonly #call: ModelCall
  readonly #sink: ResponseSink
  readonly #loop: PlanLoop
  readonly #next: StepCall
  /** Outputs that are wanted, carried or read by the condition. */
  readonly #asked: readonly string[]
  readonly #scope: CallScope
  /** Counts the iterations from 1 on. */
  #iteration = 0
  /** Inputs of the iteration that is to begin. */
  #inputs: readonly NamedTensor[] | undefined
  /** Outputs of the iteration before, which this one reads. */
  #held: HeldOutputs | undefined
  #times: StepTimes = NO_TIMES
  #isPumping = false
  #hasEnded = false
  readonly #onAbort = (): void => {
    const { signal } = this.#call.context
    this.#fail(signalError(signal), this.#iteration === 0 ? 'no' : 'maybe')
  }

  constructor(p: {
    readonly o: RequestDependencies
    readonly call: ModelCall
    readonly sink: ResponseSink
    readonly loop: PlanLoop
    readonly next: StepCall
  }) {
    this.#dependencies = p.o
    this.#call = p.call
    this.#sink = p.sink
    this.#loop = p.loop
    this.#next = p.next
    const { carry, reads } = p.loop
    const own = [...carry, ...reads].map(({ output }) => output)
    this.#asked = [...new Set([...p.call.request.requestedOutputs, ...own])]
    this.#scope = openCallScope({ clock: p.o.clock })
  }

  begin(): void {
    const { signal } = this.#call.context
    if (signal.aborted) return this.#onAbort()
    signal.addEventListener('abort', this.#onAbort, { once: true })
    this.#inputs = this.#call.request.inputs
    this.#pump()
  }

  /** Begins the next iteration, and those after it as long as each answers at once. */
  #pump(): void {
    if (this.#isPumping) return
    this.#isPumping = true
    for (let inputs = this.#take(); inputs !== undefined; inputs = this.#take()) {
      this.#iteration += 1
      this.#iterate(inputs)
    }
    this.#isPumping = false
  }

  #take(): readonly NamedTensor[] | undefined {
    const inputs = this.#hasEnded ? undefined : this.#inputs
    this.#inputs = undefined
    return inputs
  }

  #iterate(inputs: readonly NamedTensor[]): void {
    const { request, context, target } = this.#call
    const part = String(this.#iteration)
    const { signal } = this.#scope.context
    const lent = [request, this.#held?.lend() ?? {}].filter(({ retain }) => retain !== undefined)
    const call: ModelCall = {
      ...this.#call,
      part,
      request: {
        context: request.context,
        inputs,
        requestedOutputs: this.#asked,
        ...(request.program !== undefined && { program: request.program }),
        ...(lent.length > 0 && lendOn(lent)),
      },
      context: { ...contextWithin(context, target, part), signal },
    }
    let hasAnswered = false
    const isFirst = (): boolean => {
      const isOver = hasAnswered || this.#hasEnded
      hasAnswered = true
      return !isOver
    }
    this.#next(this.#dependencies, call, {
      send: (response) => {
        if (isFirst()) this.#responded(response)
      },
      fail: (error, executed, times) => {
        if (!isFirst()) return
        this.#times = addTimes(this.#times, times)
        this.#fail(this.#name(error), this.#iteration === 1 ? executed : 'maybe')
      },
      ready: () => (this.#hasEnded ? undefined : this.#sink.ready?.()),
    })
  }

  /** Takes the outputs of an iteration. A model of one response answers once. */
  #responded(response: StepResponse): void {
    this.#times = addTimes(this.#times, response.times)
    try {
      if (this.#isLast(response)) return this.#finish(response)
      const carried = this.#carriedOf(response)
      const held = new HeldOutputs(this.#dependencies, this.#call)
      try {
        held.hold({ ...response, outputs: carried })
      } catch (error) {
        held.end()
        throw error
      }
      // Outputs may lend on what their iteration has read, and are retained now.
      this.#held?.end()
      this.#held = held
      const names = new Set(carried.map(({ name }) => name))
      const kept = this.#call.request.inputs.filter(({ name }) => !names.has(name))
      this.#inputs = [...kept, ...carried]
    } catch (error) {
      return this.#fail(this.#name(ServeError.from(error)), 'maybe')
    }
    this.#pump()
  }

  /** @throws ServeError CONDITION_FAILED if `until` has no value. */
  #isLast({ outputs }: StepResponse): boolean {
    const { until, reads, maxIterations } = this.#loop
    if (this.#iteration >= maxIterations) return true
    if (until === undefined) return false
    const own = reads.flatMap(({ name, output }) => {
      const made = outputs.find((one) => one.name === output)
      return made === undefined ? [] : { ...made, name }
    })
    const { step, controls = [], request } = this.#call
    const { parameters } = request.context
    return holds(until, { step, tensors: [...controls, ...own], parameters })
  }

  /** Makes the inputs of the next iteration. @throws ServeError if an output is absent, or is no such input. */
  #carriedOf({ outputs }: StepResponse): readonly NamedTensor[] {
    const { config } = this.#call.target
    return this.#loop.carry.map(({ input, output }) => {
      const made = outputs.find(({ name }) => name === output)
      if (made === undefined) throw invalid(`output '${output}' is absent, want it for '${input}'`)
      const declared = config.input.find(({ name }) => name === input)
      const { datatype, shape, data } = made
      const batch = config.max_batch_size > 0 ? [-1] : []
      const dims = declared === undefined ? shape : [...batch, ...declared.dims]
      const wanted = fromConfigDatatype(declared?.data_type ?? '') ?? datatype
      if (datatype !== wanted || !shapeMatches(dims, shape)) {
        const want = `${wanted}${formatShape(dims)} as '${input}'`
        throw invalid(`output '${output}' is ${datatype}${formatShape(shape)}, want ${want}`)
      }
      return { name: input, datatype, shape, data }
    })
  }

  #finish(response: StepResponse): void {
    const { requestedOutputs } = this.#call.request
    const outputs = response.outputs.filter(({ name }) => requestedOutputs.includes(name))
    this.#end()
    this.#sink.send({ ...response, outputs, final: true, times: this.#times })
    this.#held?.end()
  }

  #fail(error: ServeError, executed: Executed): void {
    if (this.#hasEnded) return
    this.#end()
    // A callee retains the inputs that it still reads, before their owner takes them back.
    this.#scope.cancel(error)
    this.#held?.end()
    this.#sink.fail(error, executed, this.#times)
  }

  #end(): void {
    this.#hasEnded = true
    noteStep(this.#dependencies, this.#call, { what: 'iterations', count: this.#iteration })
    this.#call.context.signal.removeEventListener('abort', this.#onAbort)
  }

  /** Names the iteration in an error, unless the time of the request is over. */
  #name(error: ServeError): ServeError {
    if (isTimeOver(this.#call.context, this.#dependencies.clock)) return error
    const item = String(this.#iteration)
    return locateError(error, `step '${this.#call.step}', iteration ${item}`, item)
  }
}

function invalid(text: string): ServeError {
  return new ServeError('ITEMS_INVALID', text)
}
