import { type Dice, dice } from '@tutti/graph/testing'
import { drawStep, othersLike, type StepDraft, seenAs } from './draw-step.ts'
import {
  type Available,
  chance,
  type Drawing,
  drawValue,
  isSameType,
  pick,
  some,
  TYPES,
} from './drawing.ts'
import { extentsOf, valueOf } from './scripted-models.ts'
import {
  type EnsembleOutput,
  type EnsembleSketch,
  type GraphSketch,
  type InputPort,
  type RequestSketch,
  type StepSketch,
  type TensorType,
  type Value,
  waitsFor,
} from './sketch.ts'

/**
 * Draws a valid graph with any of the constructs, and the models and ensembles that it runs. Equal seeds give equal graphs.
 *
 * @param o.endsLate - see Drawing; true if absent.
 */
export function drawGraph(seed: number, o: { readonly endsLate?: boolean } = {}): GraphSketch {
  const roll = dice(seed)
  const d: Drawing = {
    roll,
    seed,
    slowestMs: pick(roll, [50, 2000, 50_000, 50_000]),
    models: [],
    ensembles: [],
    hasFailures: roll(4) > 0,
    endsLate: o.endsLate ?? true,
  }
  const inputs = Array.from({ length: 1 + roll(3) }, (_, i) => drawPort(d, i))
  const isDecoupled = chance(d, 25)
  const top = drawEnsemble(d, { inputs, isDecoupled, depth: 0 })
  const { models, ensembles, slowestMs } = d
  return { seed, top, models, ensembles, slowestMs }
}

/** Draws a request to a graph. */
export function drawRequest({ top, seed, slowestMs }: GraphSketch, number: number): RequestSketch {
  const roll: Dice = dice(seed * 31 + number + 7)
  const d = { roll }
  const given = top.inputs.filter(({ optional }) => !optional || chance(d, 50))
  const tier = roll(3)
  const outputs = top.outputs.filter(() => chance(d, 60)).map(({ name }) => name)
  return {
    inputs: new Map(given.map(({ name, type }) => [name, drawValue(d, type)])),
    parameters: new Map(tier === 0 ? [] : [['tier', tier === 1 ? 'gold' : 'silver']]),
    outputs: chance(d, 25) ? outputs : [],
    ...(chance(d, 20) && { deadlineMs: 1 + roll(4 * slowestMs) }),
  }
}

function drawPort(d: Drawing, i: number): InputPort {
  const type = i > 0 && chance(d, 30) ? pick(d.roll, [INTEGER, INTEGER]) : some(d.roll, TYPES)
  return withDefault(d, { name: `x${i}`, type: type ?? INTEGER, optional: chance(d, 25) })
}

const INTEGER: TensorType = { datatype: 'INT64', dims: [1] }

function withDefault(d: Drawing, port: InputPort): InputPort {
  if (!port.optional || chance(d, 50)) return port
  return { ...port, default: drawValue(d, port.type) }
}

interface EnsembleWishes {
  readonly inputs: readonly InputPort[]
  readonly isDecoupled: boolean
  readonly depth: number
}

function drawEnsemble(d: Drawing, o: EnsembleWishes): EnsembleSketch {
  const inputs = o.depth === 0 ? o.inputs : o.inputs.map((port) => withDefault(d, port))
  const drafts = drawSteps(d, { ...o, inputs })
  const last = drafts.slice(drafts.findLastIndex(({ step }) => step.callee.isDecoupled))
  const made = (o.isDecoupled ? last : drafts).flatMap(({ makes }) => makes)
  const outputs = drawOutputs(d, { inputs, drafts, made })
  const read = new Set([
    ...drafts.flatMap(({ step }) => waitsFor({ ...step, asked: [] })),
    ...outputs.flatMap(({ from }) => from),
  ])
  const ensemble: EnsembleSketch = {
    kind: 'ensemble',
    name: `e${d.ensembles.length}`,
    inputs,
    outputs,
    steps: drafts.map((draft) => finish(d, draft, read)),
    isDecoupled: o.isDecoupled,
    ...(chance(d, 12) && { timeoutMs: 1 + d.roll(4 * d.slowestMs) }),
  }
  d.ensembles.push(ensemble)
  return ensemble
}

/** Draws steps one after another, until all inputs are read. In a stream, one of them is decoupled. */
function drawSteps(d: Drawing, o: EnsembleWishes): readonly StepDraft[] {
  const { depth } = o
  const drafts: StepDraft[] = []
  let available = o.inputs.map(({ name, type, optional, default: value }): Available => {
    const mayBeMissing = optional && value === undefined
    return { ref: name, type, mayBeSkipped: false, mayBeMissing, isRead: false }
  })
  const count = 1 + d.roll(depth === 0 ? 4 : 2)
  const decoupledAt = o.isDecoupled ? d.roll(count) : -1
  const unread = (): readonly Available[] => {
    const used = drafts.filter(({ makes }) => makes.some(({ isRead }) => isRead))
    const idle = drafts.filter((draft) => !used.includes(draft)).map(({ makes }) => makes[0])
    return available.filter((one) => !one.isRead && (isInput(one) || idle.includes(one)))
  }
  const add = (must: readonly Available[], isDecoupled: boolean): void => {
    const draft = drawStep({
      d,
      name: `s${drafts.length}`,
      available,
      earlier: drafts.filter(({ step }) => !step.callee.isDecoupled).map(({ step }) => step.name),
      must,
      isDecoupled,
      isPlain: !o.isDecoupled,
      drawNested:
        depth > 1
          ? undefined
          : (inputs, decoupled) =>
              drawEnsemble(d, { inputs, isDecoupled: decoupled, depth: depth + 1 }),
    })
    drafts.push(draft)
    available = isDecoupled ? [...draft.makes] : [...available, ...draft.makes]
  }
  for (let i = 0; i < count; i += 1) add(i === decoupledAt ? unread() : [], i === decoupledAt)
  const left = available.filter((one) => isInput(one) && !one.isRead)
  if (left.length > 0) add(left, false)
  return drafts
}

function isInput({ ref }: Available): boolean {
  return !ref.includes('.')
}

/** Gives out what nothing reads, and some of the others. */
function drawOutputs(
  d: Drawing,
  o: {
    readonly inputs: readonly InputPort[]
    readonly drafts: readonly StepDraft[]
    readonly made: readonly Available[]
  },
): readonly EnsembleOutput[] {
  const { inputs, drafts, made } = o
  const idle = drafts.filter(({ makes }) => makes.every(({ isRead }) => !isRead))
  const wanted = idle.map(({ makes }) => makes[0])
  const given = made.filter((one) => wanted.includes(one) || chance(d, 20))
  const [first] = made
  const all = given.length === 0 && first !== undefined ? [first] : given
  return all.map((one, i): EnsembleOutput => {
    const other =
      one.mayBeSkipped && chance(d, 60) ? some(d.roll, othersLike(one, made)) : undefined
    const isRead = drafts.some(({ step }) => waitsFor({ ...step, asked: [] }).includes(one.ref))
    // An output may have the name of an input, where no step reads it.
    const like = isRead ? undefined : inputs.find(({ name }) => name === `i${i}`)
    const isAlike = like !== undefined && isSameType(like.type, one.type)
    const name = isAlike && other === undefined && chance(d, 50) ? like.name : `y${i}`
    const from = other === undefined ? [one.ref] : [one.ref, other.ref]
    const isSure = !one.mayBeSkipped || other !== undefined
    return { name, type: one.type, from, optional: !isSure || chance(d, 10) }
  })
}

/** Draws the values that stand in for outputs, now that it is known which ones are read. */
function finish(
  d: Drawing,
  { step, makes, hasDefault, hasItemDefault }: StepDraft,
  read: ReadonlySet<string>,
): StepSketch {
  const names = makes.map(({ ref }) => ref).filter((ref) => read.has(ref))
  const asked = names.map((ref) => ref.slice(step.name.length + 1))
  const outputs = step.callee.outputs.filter(({ name }) => asked.includes(name))
  const draw = (isItem: boolean): ReadonlyMap<string, Value> =>
    new Map(outputs.map(({ name, type }) => [name, standIn(d, step, { name, type, isItem })]))
  const values = draw(false)
  const made = { failed: ['BOOL', 2], lengths: ['INT64', 2] } as const
  for (const [name, [datatype, rows]] of Object.entries(made)) {
    if (asked.includes(name) && !step.callee.outputs.some((one) => one.name === name))
      (values as Map<string, Value>).set(name, valueOf(datatype, [rows], `${name} ${d.seed}`))
  }
  return {
    ...step,
    asked,
    ...(step.forEach !== undefined &&
      hasItemDefault && { forEach: { ...step.forEach, itemDefault: draw(true) } }),
    ...(hasDefault && { onError: { values } }),
  }
}

/** Draws a value for an output, mostly of the extents that its model makes. */
function standIn(
  d: Drawing,
  { callee, forEach }: Omit<StepSketch, 'asked'>,
  o: { readonly name: string; readonly type: TensorType; readonly isItem: boolean },
): Value {
  const { type } = o
  const like = { name: callee.name, isVaried: callee.kind === 'model' && callee.isVaried }
  const extents = extentsOf(like, type, `default ${d.roll(1000)}`)
  const fixed = chance(d, 85) ? extents : drawValue(d, type).shape
  if (o.isItem && forEach?.gather === 'Concat') {
    const [, ...rest] = fixed
    return valueOf(type.datatype, [d.roll(3), ...rest], `${o.name} ${d.seed}`)
  }
  if (o.isItem) return valueOf(type.datatype, fixed, `${o.name} ${d.seed}`)
  return drawValue(d, seenAs(type, forEach))
}
