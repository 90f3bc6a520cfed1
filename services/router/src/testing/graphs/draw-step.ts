import { drawCondition } from './draw-condition.ts'
import {
  type Available,
  chance,
  type Drawing,
  drawModel,
  drawOutputs,
  isSameType,
  optionalOutputsOf,
  pick,
  some,
} from './drawing.ts'
import type {
  CalleeSketch,
  EnsembleSketch,
  InputPort,
  LoopSketch,
  ModelSketch,
  Port,
  StepInput,
  StepSketch,
  TensorType,
} from './sketch.ts'

/** A step on the way. Values that stand in for outputs are drawn when it is known what is read of it. */
export interface StepDraft {
  readonly step: Omit<StepSketch, 'asked'>
  readonly makes: readonly Available[]
  /** Whether failures are answered with values. */
  readonly hasDefault: boolean
  readonly hasItemDefault: boolean
}

/** Draws an ensemble that takes these inputs. */
export type DrawNested = (inputs: readonly InputPort[], isDecoupled: boolean) => EnsembleSketch

export interface StepWishes {
  readonly d: Drawing
  readonly name: string
  readonly available: readonly Available[]
  /** Steps before that others may wait for. */
  readonly earlier: readonly string[]
  /** Tensors that it reads whatever else it reads. */
  readonly must: readonly Available[]
  readonly isDecoupled: boolean
  /** Whether the ensemble has one response. */
  readonly isPlain: boolean
  /** Absent where ensembles are deep enough. */
  readonly drawNested: DrawNested | undefined
}

type Form = 'once' | 'forEach' | 'loop'

const CODES = ['UNAVAILABLE', 'RESOURCE_EXHAUSTED', 'INTERNAL', 'INVALID_ARGUMENT'] as const

const HARD_RULES = {
  retry: { maxRetries: 3, retryOn: CODES, backoffMs: 2, budgetPercent: 1 },
  mayRunTwice: true,
} as const

/** Draws a step that reads some of the tensors that there are. */
export function drawStep(o: StepWishes): StepDraft {
  const { d, name, isDecoupled, available } = o
  const read = drawReads(o)
  const { form, cut, isHard } = drawForm(o, read)
  const inputs = read.map((tensor, i) => drawInput(o, { tensor, i, isItem: cut.has(tensor) }))
  const constant = chance(d, 20) ? drawConstant(d, inputs.length) : undefined
  const sources = constant === undefined ? inputs : [...inputs, constant]
  const gather = chance(d, 40) ? 'Concat' : 'Stack'
  const ports = sources.map(({ port }) => port)
  const callee = drawCallee(o, { form, gather, inputs: ports, isHard })
  const step = {
    name,
    callee,
    inputs: sources.map(({ source }) => source),
    after: o.earlier.filter(() => chance(d, 12)),
    ...(chance(d, 15) && { parameters: { mode: 'fast' } }),
    ...(chance(d, 30) && { when: drawCondition(d, available) }),
    ...(isHard ? HARD_RULES : drawRules(d, callee, form)),
  }
  const hasItemDefault = form === 'forEach' && chance(d, 45)
  const repeat = drawRepeat(o, { form, gather, step, isHard })
  const repeated = { ...step, ...repeat }
  return {
    step: repeated,
    makes: outputsOf(repeated, { inputs: sources, available, hasItemDefault }),
    hasDefault: !isDecoupled && !('onError' in step) && chance(d, 12),
    hasItemDefault,
  }
}

/** Draws how often a step runs, which of the tensors that it reads are cut for it, and whether it takes more retries than there are. */
function drawForm(
  { d, isDecoupled }: StepWishes,
  read: readonly Available[],
): { readonly form: Form; readonly cut: ReadonlySet<Available>; readonly isHard: boolean } {
  const items = read.filter(canBeCut)
  const wanted = pick<Form>(d.roll, ['once', 'once', 'forEach', 'forEach', 'loop'])
  const isOnce = isDecoupled || (wanted === 'forEach' && items.length === 0)
  const form = isOnce ? 'once' : wanted
  const cut = form === 'forEach' ? items.filter((_, i) => i === 0 || chance(d, 40)) : []
  // Retries come back with time.
  const isHard = form === 'loop' && d.hasFailures && d.slowestMs < 100 && chance(d, 30)
  return { form, cut: new Set(cut), isHard }
}

function canBeCut({ type, mayBeMissing }: Available): boolean {
  return type.dims.length > 0 && !mayBeMissing
}

function drawReads({ d, available, must }: StepWishes): readonly Available[] {
  const read = new Set(must)
  const count = must.length > 0 ? d.roll(2) : 1 + d.roll(3)
  for (let i = 0; i < count || read.size === 0; i += 1) {
    const unread = available.filter(({ isRead }) => !isRead)
    const among = unread.length > 0 && chance(d, 60) ? unread : available
    const one = some(d.roll, among)
    if (one !== undefined) read.add(one)
  }
  return [...read]
}

interface DrawnInput {
  readonly source: StepInput
  readonly port: InputPort
}

function drawInput(
  { d, available }: StepWishes,
  o: { readonly tensor: Available; readonly i: number; readonly isItem: boolean },
): DrawnInput {
  const { tensor, i, isItem } = o
  const name = `i${i}`
  const others = isItem || !tensor.mayBeSkipped ? [] : othersLike(tensor, available)
  const other = chance(d, 60) ? some(d.roll, others) : undefined
  const from = other === undefined ? [tensor] : [tensor, other]
  for (const one of from) one.isRead = true
  const [, ...rest] = tensor.type.dims
  const type = isItem ? { ...tensor.type, dims: rest } : tensor.type
  const optional = from.some(({ mayBeMissing }) => mayBeMissing) || chance(d, 30)
  return {
    source: { name, from: from.map(({ ref }) => ref), isItem },
    port: { name, type, optional },
  }
}

export function othersLike(
  { ref, type }: Available,
  available: readonly Available[],
): readonly Available[] {
  return available.filter((one) => one.ref !== ref && isSameType(one.type, type))
}

function drawConstant(d: Drawing, i: number): DrawnInput {
  const name = `i${i}`
  const type: TensorType = { datatype: 'FP32', dims: [2] }
  const from = { datatype: 'FP32', shape: [2], values: [d.roll(100), 0.5] } as const
  return { source: { name, from, isItem: false }, port: { name, type, optional: chance(d, 50) } }
}

function drawCallee(
  o: StepWishes,
  wants: {
    readonly form: Form
    readonly gather: 'Stack' | 'Concat'
    readonly inputs: readonly InputPort[]
    readonly isHard: boolean
  },
): CalleeSketch {
  const { d, isDecoupled, drawNested } = o
  const { form, gather, inputs, isHard } = wants
  if (drawNested !== undefined && !isHard && !hasScalar(inputs) && chance(d, 30)) {
    const nested = drawNested(inputs, isDecoupled)
    if (nested.isDecoupled === isDecoupled && fits(nested, wants)) return nested
  }
  const outputs = drawOutputs(d, form === 'forEach' && gather === 'Stack')
  const carried = form === 'loop' ? inputs.slice(0, 1 + d.roll(2)) : []
  const ports = carried.map(({ type }, i): Port => ({ name: `c${i}`, type }))
  return drawModel(d, {
    inputs,
    outputs: [...outputs, ...ports],
    isDecoupled,
    isWhole: isHard,
    ...(isHard && { reliability: 'flaky' }),
    mayEndLate: form === 'once' && o.isPlain,
    maxBatchSize: form === 'forEach' ? pick(d.roll, [0, 0, 2, 3]) : 0,
  })
}

/** Ensembles have no scalars: the items of a list of numbers go to a model. */
function hasScalar(ports: readonly Port[]): boolean {
  return ports.some(({ type }) => type.dims.length === 0)
}

/** Tells whether an ensemble can be run in the form that was drawn. */
function fits(
  nested: EnsembleSketch,
  { form, gather }: { readonly form: Form; readonly gather: 'Stack' | 'Concat' },
): boolean {
  if (form === 'loop') return carriesOf(nested).length > 0
  const isFlat = nested.outputs.some(({ type }) => type.dims.length === 0)
  return form === 'once' || gather === 'Stack' || !isFlat
}

/** Lists inputs and outputs of one type. */
function carriesOf({ inputs, outputs }: CalleeSketch): LoopSketch['carry'] {
  return inputs.flatMap((input) => {
    const output = outputs.find(({ type }) => isSameType(type, input.type))
    return output === undefined ? [] : [{ input: input.name, output: output.name }]
  })
}

function drawRules(d: Drawing, callee: CalleeSketch, form: Form) {
  const timeoutMs = 1 + d.roll(2 * d.slowestMs)
  if (callee.isDecoupled) return chance(d, 15) ? { timeoutMs } : {}
  // A model that ends late would answer twice.
  const isHedged = callee.kind === 'model' && !callee.endsLate && chance(d, 15)
  return {
    ...(chance(d, 20) && { timeoutMs }),
    ...(chance(d, 40) && drawRetry(d)),
    ...(isHedged && { hedgeMs: 1 + d.roll(d.slowestMs), mayRunTwice: true }),
    ...(chance(d, 22) && {
      onError: {
        fallback: drawFallback(d, callee, form),
        ...(chance(d, 30) && { timeoutMs: 1 + d.roll(2 * d.slowestMs) }),
      },
    }),
  }
}

function drawRetry(d: Drawing): Pick<StepSketch, 'retry' | 'mayRunTwice'> {
  const codes = CODES.filter((code) => chance(d, code === 'UNAVAILABLE' ? 70 : 30))
  const mustRunTwice = codes.includes('INTERNAL') || codes.includes('INVALID_ARGUMENT')
  return {
    retry: {
      maxRetries: d.roll(4),
      retryOn: codes.length === 0 ? ['UNAVAILABLE'] : codes,
      backoffMs: 2 * (1 + d.roll(40)),
      budgetPercent: pick(d.roll, [1, 20, 100]),
    },
    ...((mustRunTwice || chance(d, 40)) && { mayRunTwice: true }),
  }
}

/** Draws what can run in place of a step, sometimes in an ensemble of its own. */
function drawFallback(d: Drawing, { inputs, outputs }: CalleeSketch, form: Form): CalleeSketch {
  const ports = outputs.map(({ name, type }) => ({ name, type }))
  const plain = inputs.map(({ name, type, optional }) => ({ name, type, optional }))
  const isNested = !hasScalar([...inputs, ...outputs]) && chance(d, 30)
  const model = drawModel(d, {
    inputs: plain,
    outputs: ports,
    isWhole: true,
    maxBatchSize: form === 'forEach' && !isNested ? pick(d.roll, [0, 2]) : 0,
  })
  return isNested ? wrap(d, model) : model
}

/** Makes an ensemble of one model. */
function wrap(d: Drawing, model: ModelSketch): EnsembleSketch {
  const ensemble: EnsembleSketch = {
    kind: 'ensemble',
    name: `e${d.ensembles.length}`,
    inputs: model.inputs,
    outputs: model.outputs.map(({ name, type }) => {
      return { name, type, from: [`only.${name}`], optional: false }
    }),
    steps: [
      {
        name: 'only',
        callee: model,
        inputs: model.inputs.map(({ name }) => ({ name, from: [name], isItem: false })),
        after: [],
        asked: model.outputs.map(({ name }) => name),
        ...(chance(d, 30) && { timeoutMs: 1 + d.roll(2 * d.slowestMs) }),
      },
    ],
    isDecoupled: false,
    ...(chance(d, 20) && { timeoutMs: 1 + d.roll(2 * d.slowestMs) }),
  }
  d.ensembles.push(ensemble)
  return ensemble
}

function drawRepeat(
  { d, available, name }: StepWishes,
  o: {
    readonly form: Form
    readonly gather: 'Stack' | 'Concat'
    readonly step: Pick<StepSketch, 'callee'>
    readonly isHard: boolean
  },
): Pick<StepSketch, 'forEach' | 'loop'> {
  if (o.form === 'once') return {}
  if (o.form === 'loop') {
    const all = carriesOf(o.step.callee)
    const carry = all.filter((_, i) => i === 0 || chance(d, 30))
    const own = o.step.callee.outputs.map(({ name: output, type }): Available => {
      const ref = `${name}.${output}`
      return { ref, type, mayBeSkipped: false, mayBeMissing: false, isRead: true }
    })
    const until = drawCondition(d, [...own, ...(chance(d, 30) ? available : [])])
    if (o.isHard) return { loop: { carry, maxIterations: 40 } }
    const maxIterations = 1 + d.roll(5)
    return { loop: { carry, maxIterations, ...(chance(d, 75) && { until }) } }
  }
  const counts = available.filter(({ type }) => type.datatype === 'INT64' && isOne(type))
  const count = chance(d, 40) ? some(d.roll, counts) : undefined
  if (count !== undefined) count.isRead = true
  return {
    forEach: {
      maxItems: pick(d.roll, [2, 3, 4, 6, 6]),
      maxParallel: 1 + d.roll(3),
      gather: o.gather,
      ...(count !== undefined && { count: count.ref }),
    },
  }
}

function isOne({ dims }: TensorType): boolean {
  return dims.length === 0 || dims.join() === '1'
}

/** Lists what a step makes for the graph around it. */
function outputsOf(
  step: Omit<StepSketch, 'asked'>,
  o: {
    readonly inputs: readonly DrawnInput[]
    readonly available: readonly Available[]
    readonly hasItemDefault: boolean
  },
): readonly Available[] {
  const { name, callee, forEach } = step
  const withheld = [
    ...optionalOutputsOf(callee),
    ...(step.onError !== undefined && 'fallback' in step.onError
      ? optionalOutputsOf(step.onError.fallback)
      : []),
  ]
  const isSkipped = step.when !== undefined || o.inputs.some((input) => mayBeAbsent(input, o))
  const make = (output: string, type: TensorType, isMade = false): Available => ({
    ref: `${name}.${output}`,
    type,
    mayBeSkipped: isSkipped || withheld.includes(output),
    mayBeMissing: !isMade && forEach === undefined && isMissing(callee, output),
    isRead: false,
  })
  const own = callee.outputs.map(({ name: output, type }) => make(output, seenAs(type, forEach)))
  if (forEach === undefined) return own
  const flags = o.hasItemDefault ? [make('failed', { datatype: 'BOOL', dims: [-1] }, true)] : []
  const lengths = make('lengths', { datatype: 'INT64', dims: [-1] }, true)
  return [...own, ...flags, ...(forEach.gather === 'Concat' ? [lengths] : [])]
}

/** Returns a type as the graph around a step for each item sees it. */
export function seenAs(type: TensorType, forEach: StepSketch['forEach']): TensorType {
  if (forEach === undefined) return type
  const { datatype, dims } = type
  const [, ...rest] = dims
  return { datatype, dims: [-1, ...(forEach.gather === 'Stack' ? dims : rest)] }
}

function mayBeAbsent(
  { source: { from, isItem }, port }: DrawnInput,
  { available }: { readonly available: readonly Available[] },
): boolean {
  if ('datatype' in from || (port.optional && !isItem)) return false
  return from.every((ref) => available.find((one) => one.ref === ref)?.mayBeSkipped === true)
}

/** Tells whether responses of a callee may lack an output without a word. */
function isMissing(callee: CalleeSketch, output: string): boolean {
  if (callee.kind === 'model') return callee.withholds
  const given = callee.outputs.find(({ name }) => name === output)
  return (given?.from ?? []).some((ref) => {
    const [step, made = ''] = ref.split('.')
    const maker = callee.steps.find(({ name }) => name === step)
    return maker !== undefined && maker.forEach === undefined && isMissing(maker.callee, made)
  })
}
