import { type CallScope, openCallScope } from '@tutti/chassis'
import { createManualClock } from '@tutti/chassis/testing'
import { ServeError } from '@tutti/errors'
import {
  EMPTY_CONTEXT,
  type NamedTensor,
  type ResponseSink,
  type StepCount,
  type StepTimes,
} from '@tutti/tensor'
import { Lender, RecordedResponses } from '@tutti/tensor/testing'
import type { ModelCall } from '../calls/model-call.ts'
import type { RequestDependencies } from '../calls/request-dependencies.ts'
import type { StepCall } from '../calls/step-call.ts'
import { toConfig } from './test-router.ts'

/** A call of an item or an iteration, which a test ends. */
export interface RepeatedCall {
  readonly part: string | undefined
  readonly request: ModelCall['request']
  readonly signal: ModelCall['context']['signal']
  /** Answers with outputs, in memory that is used again unless `isOrdinary`. */
  answer: (outputs: readonly NamedTensor[], isOrdinary?: boolean) => void
  fail: ResponseSink['fail']
}

const ONE: StepTimes = {
  queueNs: 1,
  computeInputNs: 1,
  computeInferNs: 1,
  computeOutputNs: 1,
  transferNs: 0,
}

export interface RepeatRigOptions {
  /** Wraps the calls. */
  readonly wrap: (next: StepCall) => StepCall
  /** The config.pbtxt of the model, without its name. */
  readonly model: string
  readonly inputs: readonly NamedTensor[]
  readonly controls?: readonly NamedTensor[]
  readonly wanted?: readonly string[]
  /** Bytes that may be held at a time. */
  readonly maxBytes?: number
  readonly remainingMs?: number
  /** Ends a call at once. */
  readonly act?: (call: RepeatedCall) => void
}

/** Makes one call of a step that runs several times, whose parts a test ends. */
export function createRepeatRig(o: RepeatRigOptions) {
  const clock = createManualClock()
  const lender = new Lender()
  const calls: RepeatedCall[] = []
  const sink = new RecordedResponses()
  const memory = { count: 0, bytesInUse: 0 }
  const bytes = { held: 0, most: 0 }
  const charge = (more: number): void => {
    if (more > 0 && bytes.held + more > (o.maxBytes ?? Number.POSITIVE_INFINITY)) {
      throw new ServeError('OVERLOADED', 'no memory')
    }
    bytes.held += more
    bytes.most = Math.max(bytes.most, bytes.held)
  }
  const scope: CallScope = openCallScope({
    clock,
    memory: { charge },
    ...(o.remainingMs !== undefined && { remainingMs: o.remainingMs }),
  })
  const next: StepCall = (_o, { part, request, context: { signal } }, to) => {
    const call: RepeatedCall = {
      part,
      request,
      signal,
      answer: (outputs, isOrdinary = false) => {
        const plain = { index: 0, final: true, parameters: new Map(), times: ONE }
        if (isOrdinary) return to.send({ ...plain, outputs })
        const { tensors, retain, end } = lender.lend(outputs)
        to.send({ ...plain, outputs: tensors, retain })
        end()
      },
      fail: (error, executed, times = ONE) => to.fail(error, executed, times),
    }
    calls.push(call)
    o.act?.(call)
  }
  const { tensors, retain, end } = lender.lend(o.inputs)
  const request = {
    context: EMPTY_CONTEXT,
    inputs: tensors,
    retain,
    requestedOutputs: o.wanted ?? ['Y'],
  }
  const passed: ResponseSink = {
    send: (response) => {
      sink.send(response)
      end()
    },
    fail: (...failure) => {
      sink.fail(...failure)
      end()
    },
  }
  const entry = { name: 'm' }
  const target = { config: toConfig('m', o.model), entry } as ModelCall['target']
  const owner = {} as ModelCall['owner']
  const { controls = [] } = o
  const call = { target, request, ensemble: 'e', step: 'read', controls, owner }
  const counts: Partial<Record<StepCount, number>> = {}
  const countStep = (_step: object, what: StepCount, count: number): void => {
    counts[what] = (counts[what] ?? 0) + count
  }
  const dependencies = { clock, memory, metrics: { countStep } } as unknown as RequestDependencies
  o.wrap(next)(dependencies, { ...call, context: scope.context }, passed)
  return {
    clock,
    calls,
    scope,
    bytes,
    inputs: tensors,
    /** Numbers that the metrics of the step have counted. */
    counts,
    /** The one answer, once it is there. */
    get answer() {
      return sink.responses[0]
    },
    /** Number of answers. */
    get answers() {
      return sink.responses.length
    },
    /** Loans, tensors and bytes that are left of the call: none, once it has ended. */
    get left() {
      return [lender.open, memory.count, memory.bytesInUse, bytes.held]
    },
  }
}
