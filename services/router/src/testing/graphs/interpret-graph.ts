import { interpretStep, noValue } from './interpret-call.ts'
import { evaluate } from './interpret-condition.ts'
import {
  type Answer,
  type Asked,
  type End,
  endAt,
  type Fault,
  faultOf,
  firstFailure,
  type Interpretation,
  Undecided,
  withPrefix,
} from './interpretation.ts'
import type { Texts, Values } from './scripted-models.ts'
import {
  type EnsembleSketch,
  type Ref,
  type RequestSketch,
  readsOf,
  type StepSketch,
  type Value,
  waitsFor,
} from './sketch.ts'

/** A tensor in its place, or the knowledge that there is none. */
interface Cell {
  readonly at: number
  readonly value: Value | undefined
  /** Whether there is none because a step was skipped. */
  readonly isSkipped: boolean
}

/** Computes what a request to a graph is answered with. */
export function interpretGraph(
  o: Interpretation,
  { inputs, parameters, outputs, deadlineMs }: RequestSketch,
  at: number,
): Answer {
  const { top } = o.graph
  const mark = o.mark()
  const answer = interpretEnsemble(o, top, { inputs, parameters, outputs, at })
  if (deadlineMs === undefined) return answer
  const text = `deadline of ${deadlineMs} ms exceeded`
  const fault = faultOf('DEADLINE_EXCEEDED', `in ensemble '${top.name}', ${text}`, {
    ensemble: top.name,
  })
  return endAt(o, mark, answer, { at: at + deadlineMs, fault })
}

/** One request to one ensemble. */
interface Run {
  readonly o: Interpretation
  readonly ensemble: EnsembleSketch
  readonly asked: Asked
  readonly needed: readonly StepSketch[]
}

export function interpretEnsemble(
  o: Interpretation,
  ensemble: EnsembleSketch,
  asked: Asked,
): Answer {
  const mark = o.mark()
  const run: Run = { o, ensemble, asked, needed: neededSteps(ensemble, asked.outputs) }
  const cells = new Map(
    ensemble.inputs.map(({ name, default: value }): [Ref, Cell] => {
      const cell = { at: asked.at, value: asked.inputs.get(name) ?? value, isSkipped: false }
      return [name, cell]
    }),
  )
  const stretch = newStretch(cells)
  const whole = follow(run, stretch, asked.at)
  const { responses, end } = whole
  // Some of its steps may have run.
  const fault = end.fault && {
    ensemble: ensemble.name,
    ...withPrefix(end.fault, `in ensemble '${ensemble.name}', `),
    executed: 'maybe' as const,
  }
  const answer = { responses, end: { at: end.at, ...(fault !== undefined && { fault }) } }
  const { timeoutMs } = ensemble
  if (timeoutMs === undefined) return answer
  const text = `in ensemble '${ensemble.name}', the ensemble's timeout of ${timeoutMs} ms exceeded`
  const limit = {
    at: asked.at + timeoutMs,
    fault: faultOf('DEADLINE_EXCEEDED', text, { ensemble: ensemble.name }),
  }
  return endAt(o, mark, answer, limit)
}

/** Finds the steps that the outputs need. */
function neededSteps(
  { steps, outputs }: EnsembleSketch,
  wanted: readonly string[],
): readonly StepSketch[] {
  const given = outputs.filter(({ name }) => wanted.length === 0 || wanted.includes(name))
  const refs = new Set(given.flatMap(({ from }) => from))
  const needed = new Set<StepSketch>()
  // Steps read only what steps before them make.
  for (const step of steps.toReversed()) {
    if (!step.asked.some((output) => refs.has(`${step.name}.${output}`))) continue
    needed.add(step)
    for (const ref of waitsFor(step)) refs.add(ref)
  }
  return steps.filter((step) => needed.has(step))
}

/** The tensors that belong together: those of a request, or of one response of a decoupled step. */
interface Stretch {
  readonly cells: Map<Ref, Cell>
  /** When the steps have ended, by name. */
  readonly ended: Map<string, number>
  readonly ends: End[]
}

function newStretch(cells: Map<Ref, Cell>, ended = new Map<string, number>()): Stretch {
  return { cells, ended: new Map(ended), ends: [] }
}

/** Computes what follows from the tensors that there are. */
function follow(run: Run, stretch: Stretch, since: number): Answer {
  const { o, needed } = run
  const mark = o.mark()
  for (const step of needed) {
    if (stretch.ended.has(step.name) || !isReadable(step, stretch)) continue
    const begun = begin(run, step, stretch, since)
    if (begun.kind === 'stream') return followStream(run, stretch, { step, mark, ...begun })
  }
  const failure = firstFailure(stretch.ends)
  if (failure !== undefined) {
    if (failure.at < Number.POSITIVE_INFINITY) o.cut(mark, failure.at)
    return { responses: [], end: failure }
  }
  return respond(run, stretch, since)
}

/** Tells whether all that a step waits for is there, or known to be absent. */
function isReadable(step: StepSketch, { cells }: Stretch): boolean {
  return waitsFor(step).every((ref) => cells.has(ref))
}

function respond({ ensemble, asked }: Run, { cells, ends }: Stretch, since: number): Answer {
  const at = Math.max(since, ...ends.map((end) => end.at))
  const { outputs: wanted } = asked
  const given = ensemble.outputs.filter(({ name }) => wanted.length === 0 || wanted.includes(name))
  const outputs = new Map<string, Value>()
  for (const { name, from, optional } of given) {
    const { value, isSkipped } = firstOf(cells, from)
    if (value === undefined && isSkipped && !optional) {
      const makers = new Set(from.flatMap((ref) => ref.split('.').slice(0, -1)))
      const named = [...makers].map((maker) => `'${maker}'`).join(', ')
      const text = `output '${name}': the steps that make it (${named}) were skipped, want it in every response unless it is optional`
      return { responses: [], end: { at, fault: faultOf('OUTPUT_ABSENT', text) } }
    }
    if (value !== undefined) outputs.set(name, value)
  }
  return { responses: [{ at, outputs }], end: { at } }
}

function firstOf(
  cells: ReadonlyMap<Ref, Cell>,
  refs: readonly Ref[],
): Pick<Cell, 'value' | 'isSkipped'> {
  const found = refs.flatMap((ref) => cells.get(ref) ?? [])
  const there = found.find(({ value }) => value !== undefined)
  return there ?? { value: undefined, isSkipped: found.some(({ isSkipped }) => isSkipped) }
}

type Begun = { readonly kind: 'ended' } | { readonly kind: 'stream'; readonly answer: Answer }

/** Computes a step. What it makes takes its place, unless it is a stream. */
function begin(run: Run, step: StepSketch, stretch: Stretch, since: number): Begun {
  const { cells, ended, ends } = stretch
  const { name, callee, after } = step
  const times = [
    ...waitsFor(step).map((ref) => cells.get(ref)?.at ?? since),
    ...after.map((other) => endOf(run, other, ended)),
  ]
  const at = Math.max(since, ...times)
  const skip = (): Begun => {
    ended.set(name, at)
    if (callee.isDecoupled) return { kind: 'stream', answer: { responses: [], end: { at } } }
    for (const output of step.asked) {
      cells.set(`${name}.${output}`, { at, value: undefined, isSkipped: true })
    }
    return { kind: 'ended' }
  }
  // A step before has failed, or never ends.
  if (at === Number.POSITIVE_INFINITY) return { kind: 'ended' }
  if (lacksInput(step, cells)) return skip()
  const parameters: Texts = new Map([
    ...run.asked.parameters,
    ...Object.entries(step.parameters ?? {}),
  ])
  const controls = controlsOf(step, cells)
  if (step.when !== undefined) {
    const value = evaluate(step.when, { tensors: controls, parameters })
    if (value === false) return skip()
    if (value === undefined) {
      ends.push({ at, fault: inStep(step, noValue(name)) })
      return { kind: 'ended' }
    }
  }
  const asked = { inputs: inputsOf(step, cells), parameters, outputs: step.asked, at }
  const { o } = run
  const answer = interpretStep({ o, step, asked, controls, ensemble: interpretEnsemble })
  const { end, responses } = answer
  const fault = end.fault && inStep(step, end.fault)
  const last = { at: end.at, ...(fault !== undefined && { fault }) }
  if (callee.isDecoupled) return { kind: 'stream', answer: { responses, end: last } }
  ends.push(last)
  const [response] = responses
  if (response !== undefined) put(step, stretch, response)
  if (fault === undefined) ended.set(name, end.at)
  return { kind: 'ended' }
}

/** Returns when a step has ended for which others wait. One that does not run is not waited for. */
function endOf({ needed, asked }: Run, name: string, ended: ReadonlyMap<string, number>): number {
  if (!needed.some((step) => step.name === name)) return asked.at
  return ended.get(name) ?? Number.POSITIVE_INFINITY
}

function put(step: StepSketch, { cells }: Stretch, response: Answer['responses'][number]): void {
  for (const output of step.asked) {
    const value = response.outputs.get(output)
    const isSkipped = value === undefined && withheldBy(step).includes(output)
    cells.set(`${step.name}.${output}`, { at: response.at, value, isSkipped })
  }
}

/** Lists the outputs that a step lacks where its own ensemble, or its fallback's, has skipped steps. */
function withheldBy({ callee, onError }: StepSketch): readonly string[] {
  const fallback = onError !== undefined && 'fallback' in onError ? [onError.fallback] : []
  return [callee, ...fallback].flatMap((one) =>
    one.kind === 'model'
      ? []
      : one.outputs.flatMap(({ name, optional }) => (optional ? [name] : [])),
  )
}

function lacksInput(step: StepSketch, cells: ReadonlyMap<Ref, Cell>): boolean {
  return step.inputs.some(({ name, from, isItem }) => {
    if ('datatype' in from) return false
    const port = step.callee.inputs.find((input) => input.name === name)
    const isRequired = isItem || port?.optional !== true
    const { value, isSkipped } = firstOf(cells, from)
    return isRequired && value === undefined && isSkipped
  })
}

function inputsOf({ inputs }: StepSketch, cells: ReadonlyMap<Ref, Cell>): Values {
  return new Map(
    inputs.flatMap(({ name, from }): [string, Value][] => {
      const value = 'datatype' in from ? from : firstOf(cells, from).value
      return value === undefined ? [] : [[name, value]]
    }),
  )
}

function controlsOf(step: StepSketch, cells: ReadonlyMap<Ref, Cell>): Values {
  const { when, loop, forEach } = step
  const refs = [
    ...readsOf(when),
    ...readsOf(loop?.until),
    ...(forEach?.count ? [forEach.count] : []),
  ]
  return new Map(
    refs.flatMap((ref): [string, Value][] => {
      const value = cells.get(ref)?.value
      return value === undefined ? [] : [[ref, value]]
    }),
  )
}

/** Says where a failure was, unless it is known better. */
function inStep({ name, callee }: StepSketch, fault: Fault): Fault {
  const texts = fault.texts.map((text) => {
    // The text of a lost replica does not say what it ran.
    const isTold = fault.reason !== 'STEP_LOST' || fault.step !== undefined
    return isTold || text.startsWith(`step '${name}`) ? text : `step '${name}': ${text}`
  })
  return { step: name, model: callee.name, ...fault, texts }
}

/** Computes what follows from each response of a decoupled step. Responses are given out in their order, up to the first failure. */
function followStream(
  { o, ...run }: Run,
  { cells, ended, ends }: Stretch,
  stream: { readonly step: StepSketch; readonly mark: number; readonly answer: Answer },
): Answer {
  const { step, mark, answer } = stream
  if (firstFailure(ends) !== undefined) throw new Undecided('a failure before a stream')
  const last = answer.responses.at(-1)
  // Such a response is not told from one that only says that it is the last one.
  if (last?.outputs.size === 0) throw new Undecided('an empty response')
  const marks = [o.mark()]
  const isParallel = answer.responses.length > 1
  o.parallel += isParallel ? 1 : 0
  const parts = answer.responses.map((response) => {
    const inner = newStretch(new Map(cells), ended)
    inner.ended.set(step.name, response.at)
    put(step, inner, response)
    const part = follow({ o, ...run }, inner, response.at)
    marks.push(o.mark())
    return part
  })
  o.parallel -= isParallel ? 1 : 0
  const failed = parts.findIndex(({ end }) => end.fault !== undefined)
  const given = failed === -1 ? parts : parts.slice(0, failed)
  let at = 0
  const responses = given.flatMap(({ responses: [one] }) => {
    if (one === undefined) return []
    at = Math.max(at, one.at)
    return [{ at, outputs: one.outputs }]
  })
  const end = parts[failed]?.end ?? answer.end
  const until = Math.max(at, end.at)
  cutBehind(o, { parts, marks, mark, until })
  return { responses, end: { ...end, at: until } }
}

/** Takes back what failures have cut: a failure cuts the responses from its own on, and the stream. */
function cutBehind(
  o: Interpretation,
  {
    parts,
    marks,
    mark,
    until,
  }: {
    readonly parts: readonly Answer[]
    readonly marks: readonly number[]
    readonly mark: number
    /** When the request ends. */
    readonly until: number
  },
): void {
  const failures = parts
    .map(({ end }, index) => ({ ...end, index }))
    .filter(({ fault, at }) => fault !== undefined && at < Number.POSITIVE_INFINITY)
    .toSorted((a, b) => a.at - b.at)
  const [first] = failures
  // Steps that run are cancelled only then.
  if (first !== undefined && first.at < until) o.loosen(mark, first.at)
  for (const index of [...parts.keys()].toReversed()) {
    const cut = failures.find((one) => one.index <= index)
    if (cut !== undefined) o.cut(marks[index] ?? 0, cut.at, marks[index + 1])
  }
  if (first !== undefined) o.cut(mark, first.at, marks[0])
}
