import { type CallScope, isTimeOver, openCallScope, signalError } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { PlanForEach } from '@tutti/graph'
import {
  EMPTY_CONTEXT,
  type Executed,
  NO_TIMES,
  type ResponseSink,
  type StepResponse,
  type StepTimes,
} from '@tutti/tensor'
import { addTimes } from './add-times.ts'
import { type CutItems, cutItems } from './cut-items.ts'
import {
  type CallResult,
  gatherItems,
  itemError,
  itemText,
  nameItems,
  outputsToAsk,
} from './gather-items.ts'
import { HeldOutputs } from './held-outputs.ts'
import type { ModelCall } from './model-call.ts'
import { noteStep } from './note-step.ts'
import type { RequestDependencies } from './request-dependencies.ts'
import type { StepCall } from './step-call.ts'
import { contextWithin, locateError } from './within.ts'

/**
 * Calls once for each item of the inputs, or for batches of them if the model batches, and answers with the gathered outputs. The items
 * are called in their order, so many at a time, and gathered in it.
 */
export function withForEach(forEach: PlanForEach | undefined, next: StepCall): StepCall {
  if (forEach === undefined) return next
  return (o, call, sink) => new MappedCall({ o, call, sink, forEach, next }).begin()
}

class MappedCall {
  readonly #dependencies: RequestDependencies
  readonly #call: ModelCall
  readonly #sink: ResponseSink
  readonly #forEach: PlanForEach
  readonly #next: StepCall
  /** Outputs of the model that are asked for. */
  readonly #asked: readonly string[]
  readonly #held: HeldOutputs
  readonly #scope: CallScope
  readonly #results: (CallResult | undefined)[] = []
  #cut: CutItems | undefined
  #calls = 0
  #begun = 0
  #failedItems = 0
  /** Reason of the first item that failed. */
  #itemReason: string | undefined
  #open = 0
  #times: StepTimes = NO_TIMES
  #isPumping = false
  #hasEnded = false
  readonly #onAbort = (): void => {
    const error = signalError(this.#call.context.signal)
    this.#fail(error, this.#begun === 0 ? 'no' : 'maybe')
  }

  constructor(p: {
    readonly o: RequestDependencies
    readonly call: ModelCall
    readonly sink: ResponseSink
    readonly forEach: PlanForEach
    readonly next: StepCall
  }) {
    this.#dependencies = p.o
    this.#call = p.call
    this.#sink = p.sink
    this.#forEach = p.forEach
    this.#next = p.next
    const { request, target } = p.call
    const { forEach } = p
    this.#asked = outputsToAsk({ forEach, config: target.config, wanted: request.requestedOutputs })
    this.#held = new HeldOutputs(p.o, p.call)
    this.#scope = openCallScope({ clock: p.o.clock })
  }

  begin(): void {
    const { signal } = this.#call.context
    try {
      const cut = cutItems(this.#forEach, this.#call, (bytes) => this.#charge(bytes))
      this.#cut = cut
      this.#calls = Math.ceil(cut.count / cut.perCall)
    } catch (error) {
      return this.#fail(ServeError.from(error), 'no')
    }
    if (signal.aborted) return this.#onAbort()
    signal.addEventListener('abort', this.#onAbort, { once: true })
    this.#pump()
  }

  /** Begins as many calls as may be open. One that answers at once makes place within the loop. */
  #pump(): void {
    if (this.#isPumping) return
    this.#isPumping = true
    const { maxParallel } = this.#forEach
    while (!this.#hasEnded && this.#open < maxParallel && this.#begun < this.#calls) this.#begin()
    this.#isPumping = false
    if (!this.#hasEnded && this.#open === 0) this.#finish()
  }

  #begin(): void {
    const cut = this.#cut
    if (cut === undefined) return
    const index = this.#begun++
    this.#open += 1
    const first = index * cut.perCall
    const rows = Math.min(cut.perCall, cut.count - first)
    const { request, context, target } = this.#call
    const part = itemText({ first, rows })
    const { signal } = this.#scope.context
    const call: ModelCall = {
      ...this.#call,
      part,
      request: {
        ...request,
        inputs: cut.inputsOf(first, rows),
        requestedOutputs: this.#asked,
      },
      context: { ...contextWithin(context, target, part), signal },
    }
    this.#next(this.#dependencies, call, new ItemSink(this, { index, first, rows }))
  }

  /** Takes the response of a call. A model of one response answers once. */
  responded(place: CallPlace, response: StepResponse): void {
    if (this.#hasEnded) return
    this.#times = addTimes(this.#times, response.times)
    const { index, first, rows } = place
    const problem = this.#problemOf(place, response)
    if (problem !== undefined) return this.#itemFailed(place, problem)
    try {
      this.#held.hold(response)
    } catch (error) {
      return this.#fail(this.#name(ServeError.from(error), place), 'maybe')
    }
    this.#results[index] = { first, rows, outputs: response.outputs }
    this.#ended()
  }

  /** Takes the failure of a call. */
  failed(place: CallPlace, failure: Parameters<ResponseSink['fail']>): void {
    if (this.#hasEnded) return
    const [error, executed, times] = failure
    this.#times = addTimes(this.#times, times)
    // Another process may be a moment ahead of the signal.
    if (isTimeOver(this.#call.context, this.#dependencies.clock)) {
      return this.#fail(error, this.#begun === 1 ? executed : 'maybe')
    }
    this.#itemFailed(place, this.#name(error, place), executed)
  }

  ready(): Promise<void> | undefined {
    return this.#hasEnded ? undefined : this.#sink.ready?.()
  }

  #itemFailed({ index, first, rows }: CallPlace, error: ServeError, executed?: Executed): void {
    const { itemDefault } = this.#forEach
    this.#failedItems += rows
    this.#itemReason ??= error.reason
    if (itemDefault === undefined) {
      return this.#fail(error, this.#begun === 1 ? (executed ?? 'maybe') : 'maybe')
    }
    this.#results[index] = { first, rows, outputs: undefined }
    this.#ended()
  }

  /** Finds out what is wrong with a response that lacks an output, or rows. */
  #problemOf(place: CallPlace, { outputs }: StepResponse): ServeError | undefined {
    const { step } = this.#call
    const absent = this.#asked.find((name) => !outputs.some((output) => output.name === name))
    if (absent !== undefined) {
      const text = `output '${absent}' is absent, want it of every item`
      return itemError(step, place, text)
    }
    const odd = outputs.find(({ shape }) => this.#cut?.isBatched && shape[0] !== place.rows)
    if (odd === undefined) return undefined
    const text = `output '${odd.name}' has ${odd.shape[0]} rows, want ${place.rows} as its inputs`
    return itemError(step, place, text)
  }

  #ended(): void {
    this.#open -= 1
    this.#pump()
  }

  #finish(): void {
    const { request, step, target } = this.#call
    try {
      const outputs = gatherItems({
        forEach: this.#forEach,
        config: target.config,
        step,
        wanted: request.requestedOutputs,
        isBatched: this.#cut?.isBatched ?? false,
        results: this.#results.flatMap((result) => result ?? []),
        charge: (bytes) => this.#charge(bytes),
      })
      this.#end()
      const response = { index: 0, final: true, outputs, parameters: EMPTY_CONTEXT.parameters }
      // The outputs of the only call are given on as they were lent.
      const lent = this.#calls === 1 ? this.#held.lend() : {}
      this.#sink.send({ ...response, times: this.#times, ...lent })
      this.#held.giveBack()
    } catch (error) {
      this.#fail(ServeError.from(error), 'maybe')
    }
  }

  #fail(error: ServeError, executed: Executed): void {
    if (this.#hasEnded) return
    this.#end()
    // A callee retains the inputs that it still reads, before their owner takes them back.
    this.#scope.cancel(error)
    this.#scope.close()
    this.#held.giveBack()
    this.#sink.fail(error, executed, this.#times)
  }

  /** Gives the bytes back that were counted: who gets the outputs counts them. */
  #end(): void {
    this.#hasEnded = true
    this.#call.context.signal.removeEventListener('abort', this.#onAbort)
    this.#held.endCount()
    if (this.#cut === undefined) return
    this.#note({ what: 'items', count: this.#cut.count })
    this.#note({ what: 'itemCalls', count: this.#begun })
    this.#note({ what: 'failedItems', count: this.#failedItems, reason: this.#itemReason })
  }

  #name(error: ServeError, place: CallPlace): ServeError {
    return locateError(error, `step '${nameItems(this.#call.step, place)}'`, itemText(place))
  }

  /** @throws ServeError OVERLOADED that names the step. */
  #charge(bytes: number): void {
    try {
      this.#held.charge(bytes)
    } catch (error) {
      throw ServeError.from(error).withPrefix(`step '${this.#call.step}': `)
    }
  }

  #note(note: Parameters<typeof noteStep>[2]): void {
    noteStep(this.#dependencies, this.#call, note)
  }
}

/** A call with its items. */
interface CallPlace {
  readonly index: number
  readonly first: number
  readonly rows: number
}

/** Takes the end of one call, once. */
class ItemSink implements ResponseSink {
  readonly #map: MappedCall
  readonly #place: CallPlace
  #hasEnded = false

  constructor(map: MappedCall, place: CallPlace) {
    this.#map = map
    this.#place = place
  }

  send(response: StepResponse): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    this.#map.responded(this.#place, response)
  }

  fail(...failure: Parameters<ResponseSink['fail']>): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    this.#map.failed(this.#place, failure)
  }

  ready(): Promise<void> | undefined {
    return this.#map.ready()
  }
}
