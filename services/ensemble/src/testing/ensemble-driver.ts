import { assert } from '@tutti/errors'
import type { RequestContext } from '@tutti/tensor'
import type { EnsemblePlan } from '../ensemble-plan.ts'
import type { EnsembleRun, RunAction, RunEvent, TensorEntry } from '../ensemble-run.ts'
import { createEnsembleRun } from '../graph-run.ts'
import { requestContext } from './configs.ts'

export type Invoke = Extract<RunAction, { type: 'InvokeStep' }>
export type Emit = Extract<RunAction, { type: 'Emit' }>
export type Fail = Extract<RunAction, { type: 'Fail' }>

/** A tensor by what it stands for, e.g. `step(x)`; its reference is made by the driver. */
export type Symbols = Readonly<Record<string, string>>

interface Response {
  readonly index?: number
  readonly final?: boolean
  readonly shape?: readonly number[]
  readonly parameters?: Extract<RunEvent, { type: 'StepResponded' }>['parameters']
}

/** Carries out the actions of a run on symbols instead of bytes, and keeps the books on references. */
export class EnsembleDriver {
  readonly run: EnsembleRun
  readonly plan: EnsemblePlan
  /** Not ended yet, by `step.attempt`. */
  readonly inFlight = new Map<string, Invoke>()
  readonly invoked: Invoke[] = []
  /** Steps that have sent a response. */
  readonly responded = new Set<number>()
  readonly cancelled: string[] = []
  readonly timers = new Map<number, number>()
  readonly emitted: { readonly outputs: Symbols; readonly action: Emit }[] = []
  failure: Fail | undefined
  terminals = 0
  /** By reference, counted from 1. */
  readonly #tensors: { readonly symbol: string; references: number }[] = []

  constructor(
    plan: EnsemblePlan,
    o: {
      readonly context?: Partial<RequestContext>
      readonly requestedOutputs?: readonly string[]
    } = {},
  ) {
    this.plan = plan
    const context = requestContext(o.context)
    this.run = createEnsembleRun(plan, { requestedOutputs: o.requestedOutputs ?? [], context })
  }

  /** References that are held; 0 once everything was released or emitted. */
  get held(): number {
    return this.#tensors.reduce((sum, { references }) => sum + references, 0)
  }

  start(inputs: Symbols, shape: readonly number[] = [4]): readonly RunAction[] {
    return this.#apply(this.run.start(this.#table(inputs, shape)))
  }

  respond(
    invoke: Pick<Invoke, 'step' | 'attempt'>,
    outputs: Symbols,
    o: Response = {},
  ): readonly RunAction[] {
    const { step, attempt } = invoke
    const final = o.final ?? true
    this.responded.add(step)
    if (final) this.inFlight.delete(`${step}.${attempt}`)
    return this.send({
      type: 'StepResponded',
      step,
      attempt,
      index: o.index ?? 0,
      final,
      outputs: this.#table(outputs, o.shape ?? [4]),
      parameters: o.parameters ?? new Map(),
    })
  }

  fail(
    invoke: Pick<Invoke, 'step' | 'attempt'>,
    error: Extract<RunEvent, { type: 'StepFailed' }>['error'],
    executed: 'no' | 'maybe' = 'maybe',
  ): readonly RunAction[] {
    const { step, attempt } = invoke
    this.inFlight.delete(`${step}.${attempt}`)
    return this.send({ type: 'StepFailed', step, attempt, error, executed })
  }

  fire(timer: number): readonly RunAction[] {
    this.timers.delete(timer)
    return this.send({ type: 'TimerFired', timer })
  }

  send(event: RunEvent): readonly RunAction[] {
    return this.#apply(this.run.on(event))
  }

  /** The one invocation in flight of the step with this name. */
  of(name: string): Invoke {
    const invoke = [...this.inFlight.values()].find((i) => this.plan.steps[i.step]?.name === name)
    assert(invoke !== undefined, `${name} is not in flight`)
    return invoke
  }

  /** Names of the steps in flight, in the order of their invocation. */
  get running(): readonly string[] {
    return [...this.inFlight.values()].map((i) => this.plan.steps[i.step]?.name ?? '')
  }

  /** What the inputs of an invocation stand for. */
  read(invoke: Invoke): Symbols {
    return Object.fromEntries(invoke.inputs.map(({ name, ref }) => [name, this.symbol(ref)]))
  }

  /** Asserts that the tensor may be read now. */
  symbol(ref: number): string {
    return this.#held(ref).symbol
  }

  #table(symbols: Symbols, shape: readonly number[]): ReadonlyMap<string, TensorEntry> {
    const entries = Object.entries(symbols).map(([name, symbol]): [string, TensorEntry] => {
      const ref = this.#tensors.push({ symbol, references: 1 })
      return [name, { ref, datatype: 'FP32', shape }]
    })
    return new Map(entries)
  }

  #held(ref: number) {
    const tensor = this.#tensors[ref - 1]
    assert(tensor !== undefined && tensor.references > 0, `${ref} is not held`)
    return tensor
  }

  #apply(actions: readonly RunAction[]): readonly RunAction[] {
    for (const action of actions) {
      const isLate = this.terminals > 0
      assert(!isLate || action.type === 'ReleaseTensor', `${action.type} after the end`)
      this.#applyOne(action)
    }
    return actions
  }

  #applyOne(action: RunAction): void {
    switch (action.type) {
      case 'InvokeStep':
        this.read(action)
        this.invoked.push(action)
        this.inFlight.set(`${action.step}.${action.attempt}`, action)
        break
      case 'CancelStep':
        this.cancelled.push(`${action.step}.${action.attempt}`)
        break
      case 'RetainTensor':
        this.#held(action.ref).references += 1
        break
      case 'ReleaseTensor':
        this.#held(action.ref).references -= 1
        break
      case 'SetTimer':
        this.timers.set(action.timer, action.delayMs)
        break
      case 'ClearTimer':
        assert(this.timers.delete(action.timer), `timer ${action.timer} is not set`)
        break
      case 'Emit':
        this.#emit(action)
        break
      case 'Fail':
        this.terminals += 1
        this.failure = action
        break
    }
  }

  #emit(action: Emit): void {
    assert(action.index === this.emitted.length, 'responses are counted from 0')
    const outputs: Record<string, string> = {}
    for (const [name, { ref }] of action.outputs) {
      outputs[name] = this.symbol(ref)
      this.#held(ref).references -= 1
    }
    this.emitted.push({ outputs, action })
    if (action.final) this.terminals += 1
  }
}
