import { assert } from '@tutti/errors'
import type { RequestContext } from '@tutti/tensor'
import { requestContext } from '@tutti/tensor/testing'
import { constantOf } from '../plan/constants.ts'
import type { EnsemblePlan } from '../plan/ensemble-plan.ts'
import type { EnsembleRun, RunAction, RunEvent, TensorEntry } from '../run/ensemble-run.ts'
import { createEnsembleRun } from '../run/graph-run.ts'

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
  /** Not ended yet, by execution. */
  readonly inFlight = new Map<number, Invoke>()
  readonly invoked: Invoke[] = []
  /** Steps that have sent a response. */
  readonly responded = new Set<number>()
  /** Names of the steps in flight that were cancelled. */
  readonly cancelled: string[] = []
  /** Names of the steps that did not run because an input was absent. */
  readonly skipped: string[] = []
  readonly emitted: { readonly outputs: Symbols; readonly action: Emit }[] = []
  failure: Fail | undefined
  terminals = 0
  /** By reference, counted from 1. */
  readonly #tensors: { readonly symbol: string; isHeld: boolean }[] = []

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

  /** How many tensors are held; 0 once everything was released. */
  get held(): number {
    return this.#tensors.filter(({ isHeld }) => isHeld).length
  }

  start(inputs: Symbols, shape: readonly number[] = [4]): readonly RunAction[] {
    return this.#apply(this.run.start(this.#table(inputs, shape)))
  }

  respond(
    { step, execution }: Pick<Invoke, 'step' | 'execution'>,
    outputs: Symbols,
    o: Response = {},
  ): readonly RunAction[] {
    const final = o.final ?? true
    this.responded.add(step)
    if (final) this.inFlight.delete(execution)
    return this.send({
      type: 'StepResponded',
      execution,
      index: o.index ?? 0,
      final,
      outputs: this.#table(outputs, o.shape ?? [4]),
      parameters: o.parameters ?? new Map(),
    })
  }

  fail(
    { execution }: Pick<Invoke, 'execution'>,
    error: Extract<RunEvent, { type: 'StepFailed' }>['error'],
  ): readonly RunAction[] {
    this.inFlight.delete(execution)
    return this.send({ type: 'StepFailed', execution, error })
  }

  skip({ execution }: Pick<Invoke, 'execution'>): readonly RunAction[] {
    this.inFlight.delete(execution)
    return this.send({ type: 'StepSkipped', execution })
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

  /** Reads the symbols that the inputs of an invocation stand for. */
  read(invoke: Invoke): Symbols {
    return Object.fromEntries(invoke.inputs.map(({ name, ref }) => [name, this.symbol(ref)]))
  }

  /** Asserts that the tensor may be read now. */
  symbol(ref: number): string {
    if (constantOf(ref) !== undefined) return `constant ${constantOf(ref)}`
    return this.#held(ref).symbol
  }

  #table(symbols: Symbols, shape: readonly number[]): ReadonlyMap<string, TensorEntry> {
    const entries = Object.entries(symbols).map(([name, symbol]): [string, TensorEntry] => {
      const ref = this.#tensors.push({ symbol, isHeld: true })
      return [name, { ref, datatype: 'FP32', shape }]
    })
    return new Map(entries)
  }

  #held(ref: number) {
    const tensor = this.#tensors[ref - 1]
    assert(tensor?.isHeld === true, `${ref} is not held`)
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
        this.inFlight.set(action.execution, action)
        break
      case 'SkipStep':
        this.skipped.push(this.plan.steps[action.step]?.name ?? '')
        break
      case 'CancelSteps':
        this.cancelled.push(...this.running)
        break
      case 'ReleaseTensor':
        this.#held(action.ref).isHeld = false
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
    for (const { name, ref } of action.outputs) outputs[name] = this.symbol(ref)
    this.emitted.push({ outputs, action })
    if (action.final) this.terminals += 1
  }
}
