import { testFactor, testSeed } from '@tutti/chassis/testing'
import type { ObservedModel, RequestObserver, StepCount } from '@tutti/tensor'
import t from 'tap'
import { drawGraph, drawRequest } from '../testing/graphs/draw-graph.ts'
import { createGraphRig } from '../testing/graphs/graph-rig.ts'
import type { GraphSketch } from '../testing/graphs/sketch.ts'
import { recordedSpans } from '../testing/index.ts'

const GRAPHS = 200 * testFactor()
/** Metrics whose events are told to those who watch, by the name that they have there. */
const TOLD = {
  tutti_step_skips_total: 'skipped',
  tutti_step_defaults_total: 'defaulted',
  tutti_step_retries_total: 'retried',
  tutti_step_retries_refused_total: 'retryRefused',
  tutti_step_items_total: 'items',
  tutti_step_item_calls_total: 'itemCalls',
  tutti_step_failed_items_total: 'failedItems',
  tutti_step_iterations_total: 'iterations',
} as const

/** Few budgets are small enough. */
const RARE = ['tutti_step_retries_refused_total']

/** An observer that adds up what it is told of all steps, however deep, and what has not ended. */
function counting() {
  const counts = new Map<StepCount, number>()
  const steps = new Set<string>()
  const open = new Map<string, number>()
  const add = (what: StepCount, count: number): void => {
    counts.set(what, (counts.get(what) ?? 0) + count)
  }
  const note = ({ step = '', within = '' }: ObservedModel, depth: number): string => {
    if (depth === 1) steps.add(step)
    return `${step}${within} at ${depth}`
  }
  const under = (depth: number): RequestObserver => ({
    began: (model) => {
      const name = note(model, depth)
      open.set(name, (open.get(name) ?? 0) + 1)
      return {
        steps: under(depth + 1),
        counted: add,
        ended: () => void open.set(name, (open.get(name) ?? 0) - 1),
      }
    },
    passed: (model, how) => {
      note(model, depth)
      add(how, 1)
    },
  })
  return { counts, steps, open, observer: under(1) }
}

async function metered(text: Promise<string>): Promise<ReadonlyMap<string, number>> {
  const sums = new Map<string, number>()
  for (const [, name = '', value] of (await text).matchAll(
    /^(tutti_step_\w+_total)\{.*\} (\d+)$/gm,
  )) {
    sums.set(name, (sums.get(name) ?? 0) + Number(value))
  }
  return sums
}

/** Executes requests to a graph, and says what its traces lack. */
async function trace(graph: GraphSketch) {
  const told = counting()
  const { spans, tracing } = recordedSpans()
  const rig = createGraphRig(graph, { tracing, observer: told.observer })
  const problems: string[] = []
  let answered = 0
  for (let number = 0; number < 3; number += 1) {
    told.steps.clear()
    const request = drawRequest(graph, number)
    const { responses } = await rig.ask(request)
    const isAnswered = responses.at(-1)?.error === undefined
    // Steps behind a stream without responses do not run.
    const isStreamed = graph.top.steps.some(({ callee }) => callee.isDecoupled)
    const isWhole = request.outputs.length === 0 && !isStreamed
    if (!isAnswered || !isWhole) continue
    answered += 1
    const missing = graph.top.steps.filter(({ name }) => !told.steps.has(name))
    problems.push(...missing.map(({ name }) => `request ${number}: nothing is told of ${name}`))
  }
  const openSpans = spans.filter(({ hasEnded }) => !hasEnded)
  problems.push(...openSpans.map(({ name }) => `the span ${name} has not ended`))
  const open = [...told.open].filter(([, count]) => count !== 0)
  problems.push(...open.map(([name, count]) => `${count} of ${name} have not ended`))
  const sums = await metered(rig.metrics.render())
  for (const [metric, what] of Object.entries(TOLD)) {
    const [counted = 0, seen = 0] = [sums.get(metric), told.counts.get(what)]
    if (counted !== seen) problems.push(`${metric} is ${counted}, and observers saw ${seen}`)
  }
  return { problems: problems.map((one) => `seed ${graph.seed}: ${one}`), answered, sums }
}

await t.test('traces of drawn graphs tell each step, and what metrics count', async (t) => {
  const firstSeed = testSeed() * 1000
  const problems: string[] = []
  const seen = new Map<string, number>()
  let answered = 0
  for (let i = 0; i < GRAPHS; i += 1) {
    const traced = await trace(drawGraph(firstSeed + i))
    problems.push(...traced.problems)
    answered += traced.answered
    for (const [name, sum] of traced.sums) seen.set(name, (seen.get(name) ?? 0) + sum)
  }
  t.same(problems.slice(0, 5), [], `${problems.length} problems`)
  t.ok(answered > GRAPHS / 4)
  t.same(
    Object.keys(TOLD).filter((name) => !seen.get(name) && !RARE.includes(name)),
    [],
    'things that no graph did',
  )
})
