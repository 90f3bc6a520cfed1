import { type CallScope, type Clock, openCallScope } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { StepHedge } from '@tutti/graph'
import type { Executed, InferRequest, ResponseSink, StepResponse, StepTimes } from '@tutti/tensor'
import { noReplica, type ResolvedEntry } from '../catalog/catalog.ts'
import { CallBudget } from './call-budget.ts'
import { attemptModel, type ModelCall, type RequestOwner } from './model-call.ts'
import { noteStep } from './note-step.ts'
import type { ChosenReplica, Pin } from './pin.ts'
import type { RequestDependencies } from './request-dependencies.ts'
import type { StepCall } from './step-call.ts'

/**
 * Calls a model of several replicas as one attempt does, and another replica of it too if nothing was answered within the hedge's
 * time. The sink gets the answer of exactly one of them: the first one; the other is cancelled. A failure reaches it once no
 * other attempt is under way. Never throws.
 */
export function withHedge(hedge: StepHedge | undefined): StepCall {
  if (hedge === undefined) return attemptModel
  const budget = new CallBudget({ percent: hedge.maxPercent, reserve: 1 })
  return (o, call, sink) => {
    budget.called()
    new HedgedCall(o, call, sink).begin(hedge, budget)
  }
}

/** One of the two attempts. */
interface Branch {
  readonly scope: CallScope
  readonly pins: BranchPins
  readonly isHedge: boolean
}

class HedgedCall {
  readonly #dependencies: RequestDependencies
  readonly #call: ModelCall
  readonly #sink: ResponseSink
  /** Attempts without an end. */
  readonly #open = new Set<Branch>()
  #stopTimer: (() => void) | undefined
  /** Gives back the inputs, which the attempt that loses may read a little longer than the caller lends them. */
  #giveBack: (() => void) | undefined
  #isAnswered = false
  /**
   * The first one, but one that may have executed before one that has not: what the model says, before that a replica is away.
   */
  #failure: Parameters<ResponseSink['fail']> | undefined

  constructor(o: RequestDependencies, call: ModelCall, sink: ResponseSink) {
    this.#dependencies = o
    this.#call = call
    this.#sink = sink
  }

  begin({ afterMs }: StepHedge, budget: CallBudget): void {
    const { pins } = this.#call.owner
    const choose: Choose = (o, target, request) => pins.choose(o, target, request)
    const first = new BranchPins(choose, pins, this.#dependencies.clock)
    this.#stopTimer = this.#dependencies.clock.setTimer(afterMs, () => this.#hedge(first, budget))
    this.#attempt(first, false)
  }

  #hedge({ replica }: BranchPins, budget: CallBudget): void {
    const { owner, request, context } = this.#call
    // Without a replica the first attempt still waits for one. A caller that is gone may lend its inputs no longer.
    if (replica === undefined || context.signal.aborted) return
    const { pins } = owner
    const { key } = pins.pinOf(this.#call.target)
    const serving = this.#dependencies.directory.places.byRevision.get(key) ?? []
    if (serving.every(({ address }) => address.replica === replica)) return
    if (!budget.take(this.#dependencies.clock.now())) return
    noteStep(this.#dependencies, this.#call, { what: 'hedged' })
    this.#giveBack = request.retain?.()
    const { target } = this.#call
    const choose = (o: RequestDependencies): ChosenReplica =>
      chooseOther(o, { target, pins, request, replica })
    this.#attempt(new BranchPins(choose, pins, this.#dependencies.clock), true)
  }

  #attempt(pins: BranchPins, isHedge: boolean): void {
    const { owner, context } = this.#call
    const scope = openCallScope({ clock: this.#dependencies.clock, parent: context.signal })
    const branch = { scope, pins, isHedge }
    this.#open.add(branch)
    const call = {
      ...this.#call,
      isHedge,
      owner: { key: owner.key, callers: owner.callers, root: owner.root, pins },
      context: { ...context, signal: scope.context.signal },
    }
    attemptModel(this.#dependencies, call, {
      send: (response) => this.#responded(branch, response),
      fail: (error, executed, times) => this.#failed(branch, error, executed, times),
      ready: () => (this.#isAnswered ? undefined : this.#sink.ready?.()),
    })
  }

  #responded(branch: Branch, response: StepResponse): void {
    // A model of one response answers once: what is hedged is no other.
    this.#end(branch)
    if (this.#isAnswered) return
    this.#isAnswered = true
    const lost = new ServeError('CANCELLED', 'another replica has answered')
    for (const { scope, pins } of this.#open) {
      // A replica that loses every time is cancelled every time, and no answer of it would tell that it is slow.
      pins.learnLost(this.#dependencies)
      scope.cancel(lost)
    }
    if (branch.isHedge) noteStep(this.#dependencies, this.#call, { what: 'hedgeWon' })
    this.#sink.send(response)
  }

  #failed(branch: Branch, error: ServeError, executed: Executed, times?: StepTimes): void {
    if (this.#failure === undefined || this.#failure[1] === 'no') {
      this.#failure = [error, executed, times]
    }
    this.#end(branch)
    if (this.#isAnswered || this.#open.size > 0) return
    this.#isAnswered = true
    this.#sink.fail(...this.#failure)
  }

  #end(branch: Branch): void {
    branch.scope.close()
    this.#open.delete(branch)
    this.#stopTimer?.()
    if (this.#open.size === 0) this.#giveBack?.()
  }
}

type Choose = RequestOwner['pins']['choose']

/** Chooses the replica of one attempt, under the revision that the request has pinned. */
class BranchPins {
  /** The one that was chosen last. */
  replica: string | undefined
  readonly #choose: Choose
  readonly #pins: RequestOwner['pins']
  readonly #clock: Clock
  /** Replica at which the attempt is, since when, and the outstanding work there at that time; absent while it is at none. */
  #place: { chosen: ChosenReplica; sinceMs: number; workUs: number } | undefined

  constructor(choose: Choose, pins: RequestOwner['pins'], clock: Clock) {
    this.#choose = choose
    this.#pins = pins
    this.#clock = clock
  }

  choose(o: RequestDependencies, resolved: ResolvedEntry, request: InferRequest): ChosenReplica {
    const chosen = this.#choose(o, resolved, request)
    const { replica } = chosen
    this.replica = replica.address.replica
    this.#place = { chosen, sinceMs: this.#clock.now(), workUs: replica.workUs }
    return chosen
  }

  /** Learns from an attempt that lost: another replica has answered before. */
  learnLost({ directory: { places } }: Pick<RequestDependencies, 'directory'>): void {
    if (this.#place === undefined) return
    const { chosen, sinceMs, workUs } = this.#place
    places.work.learnAtLeast(chosen, { elapsedUs: (this.#clock.now() - sinceMs) * 1e3, workUs })
  }

  ended(chosen: ChosenReplica, executed: Executed, hasFailed: boolean): void {
    this.#place = undefined
    this.#pins.ended(chosen, executed, hasFailed)
  }

  pinOf(resolved: ResolvedEntry): Pin {
    return this.#pins.pinOf(resolved)
  }
}

/** @throws ServeError STEP_UNAVAILABLE where no other replica serves the revision. */
function chooseOther(
  { directory: { places } }: Pick<RequestDependencies, 'directory'>,
  o: {
    readonly target: ResolvedEntry
    readonly pins: RequestOwner['pins']
    readonly request: InferRequest
    readonly replica: string
  },
): ChosenReplica {
  const pin = o.pins.pinOf(o.target)
  const work = places.work.expect(pin.key, o.request.inputs)
  const avoid = new Set([o.replica])
  const replica = places.acquire(pin.target, { avoid, workUs: work.us })
  if (replica === undefined) throw noReplica(pin.target)
  if (avoid.has(replica.address.replica)) {
    replica.inFlight -= 1
    replica.workUs -= work.us
    throw noReplica(pin.target)
  }
  pin.uses += 1
  return { pin, replica, work }
}
