import type { Span, Tracing } from '@tutti/chassis'
import type { ServeError } from '@tutti/errors'
import { PART_HOST, retryDelayMs, toProgram } from '@tutti/graph'
import {
  type Executed,
  NO_TIMES,
  type ResponseSink,
  type StepResponse,
  type StepTimes,
} from '@tutti/tensor'
import { checkOutputs } from '../calls/call-errors.ts'
import { type ModelCall, originOf } from '../calls/model-call.ts'
import type { ChosenPart } from '../calls/pin.ts'
import type { RequestDependencies } from '../calls/request-dependencies.ts'
import type { StepCall } from '../calls/step-call.ts'
import { countReport } from './part-report.ts'

/**
 * Calls a part of a graph as one request to a replica that has all of its models. Where there is none any longer, or the replica is
 * lost and the steps may run twice, they are called one by one.
 *
 * @param apart - calls the steps of the part one by one.
 */
export function withPart(apart: StepCall): StepCall {
  return (o, call, sink) => {
    const { target, owner, request } = call
    const chosen = target.part && owner.pins.choosePart?.(o, target.part, request)
    if (chosen === undefined) return apart(o, call, sink)
    new PartCall(o, call, { sink, chosen, apart }).begin()
  }
}

interface PartCallOptions {
  readonly sink: ResponseSink
  readonly chosen: ChosenPart
  readonly apart: StepCall
}

/** One call of a part. */
class PartCall implements ResponseSink {
  readonly #dependencies: RequestDependencies
  readonly #call: ModelCall
  readonly #options: PartCallOptions
  #span: Span | undefined
  #hasEnded = false

  constructor(o: RequestDependencies, call: ModelCall, options: PartCallOptions) {
    this.#dependencies = o
    this.#call = call
    this.#options = options
  }

  begin(): void {
    const { target, request, owner, context, step, skipped } = this.#call
    const { replicas, tracing } = this.#dependencies
    const { replica } = this.#options.chosen.replica.address
    const attempt = this.#call.nextAttempt?.() ?? 1
    this.#span = tracing && this.#startSpan(tracing, { attempt, replica })
    const trace = this.#span?.traceParent
    const program = toProgram(target.part?.text ?? '', skipped)
    replicas.executor(PART_HOST, replica).execute({ ...request, program }, this, {
      ...context,
      ...(trace !== undefined && { trace }),
      origin: originOf(owner, step, attempt),
    })
  }

  /** Starts the span of the part. The replica has those of its steps. */
  #startSpan(
    tracing: Tracing,
    { attempt, replica }: { readonly attempt: number; readonly replica: string },
  ): Span {
    const { ensemble, step, context } = this.#call
    return tracing.startSpan(`execute steps of ${ensemble}`, {
      kind: 'client',
      parent: context.trace,
      attributes: {
        'tutti.ensemble': ensemble,
        'tutti.step': step,
        'tutti.replica': replica,
        'tutti.attempt': attempt,
      },
    })
  }

  send(response: StepResponse): void {
    if (this.#hasEnded) return
    const problem = checkOutputs(this.#call, response)
    if (problem !== undefined) return this.fail(problem, 'maybe', response.times)
    const { chosen, sink } = this.#options
    this.#count(response.times)
    this.#dependencies.directory.places.work.learn(chosen, response.times)
    if (response.final) this.#end('maybe', false)
    sink.send(response)
  }

  fail(error: ServeError, executed: Executed, times?: StepTimes): void {
    if (this.#hasEnded) return
    const { chosen, sink, apart } = this.#options
    const { replica } = chosen.replica.address
    this.#count(times)
    this.#span?.recordError(error)
    this.#end(executed, !this.#call.context.signal.aborted)
    if (error.reason === 'REVISION_GONE') this.#dependencies.revisionRefused(replica)
    if (this.#mayRunApart(error, executed)) return apart(this.#dependencies, this.#call, sink)
    sink.fail(error.withDetails({ replica }), executed, times)
  }

  ready(): Promise<void> | undefined {
    return this.#hasEnded ? undefined : this.#options.sink.ready?.()
  }

  /** The failure of a step within is final: its own rules were obeyed where it ran. */
  #mayRunApart(error: ServeError, executed: Executed): boolean {
    const { target, context } = this.#call
    if (context.signal.aborted || error.details.ensemble !== undefined) return false
    if (executed === 'no') return true
    const failed = { error, executed, hasResponded: false, tries: 1 }
    return (target.plan?.steps ?? []).every(
      ({ call }) => retryDelayMs(failed, call, this.#dependencies.random) !== undefined,
    )
  }

  #count({ part }: StepTimes = NO_TIMES): void {
    const { ensemble, target } = this.#call
    const { plan } = target
    if (part === undefined || plan === undefined) return
    const { chosen } = this.#options
    const traceId = this.#span?.sampledTraceId
    countReport(this.#dependencies, part.steps, { plan, ensemble, chosen, traceId })
  }

  /** Comes before the sink gets the end. */
  #end(executed: Executed, hasFailed: boolean): void {
    this.#hasEnded = true
    this.#call.owner.pins.partEnded?.(this.#options.chosen, executed, hasFailed)
    this.#span?.end()
  }
}
