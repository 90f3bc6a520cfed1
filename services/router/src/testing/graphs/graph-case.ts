import type { RecordedResponse, RecordedResponses } from '@tutti/tensor/testing'
import { drawRequest } from './draw-graph.ts'
import { createGraphRig } from './graph-rig.ts'
import { interpretGraph } from './interpret-graph.ts'
import { type Answer, type Fault, Interpretation, Undecided } from './interpretation.ts'
import { hashOf, show, toValue, type Values } from './scripted-models.ts'
import type { GraphSketch, RequestSketch } from './sketch.ts'

/** How a graph was executed, and what was wrong. */
export interface GraphResult {
  readonly problems: readonly string[]
  /** Requests by how they ended: `answered`, the reason of a failure, or `undecided`. */
  readonly ends: readonly string[]
  /** Requests for parts of it. */
  readonly parts: number
}

const REQUESTS = 3

/**
 * Executes requests to a drawn graph, one after another, and compares with the interpreter.
 *
 * @param o.runsParts - whether replicas run parts of graphs.
 */
export async function executeGraph(
  graph: GraphSketch,
  options: { readonly runsParts?: boolean } = {},
): Promise<GraphResult> {
  const { seed } = graph
  const rig = createGraphRig(graph, options)
  const o = new Interpretation(graph)
  const problems: string[] = []
  const ends: string[] = []
  let isDecided = true
  for (let number = 0; number < REQUESTS; number += 1) {
    const request = drawRequest(graph, number)
    const at = rig.clock.now()
    const wanted: Answer | undefined = isDecided ? interpret(o, request, at) : undefined
    isDecided = wanted !== undefined
    const got = await rig.ask(request)
    const name = `seed ${seed}, request ${number}`
    problems.push(...rig.left.map((left) => `${name}: ${left} left`))
    if (wanted === undefined) {
      ends.push('undecided')
      continue
    }
    const difference = compare(wanted, got) ?? compareExecutions(o, rig.executions)
    if (difference !== undefined) problems.push(`${name}: ${difference}`)
    ends.push(wanted.end.fault?.reason ?? 'answered')
    // All that follows would differ too.
    if (problems.length > 0) break
  }
  return { problems, ends, parts: rig.ranParts }
}

/** Executes requests with little memory, of which some fail. @returns what is left of them. */
export async function executeBounded(graph: GraphSketch): Promise<readonly string[]> {
  const rig = createGraphRig(graph, { maxBytes: hashOf('bytes', graph.seed) % 300 })
  const problems: string[] = []
  for (let number = 0; number < REQUESTS; number += 1) {
    await rig.ask(drawRequest(graph, number))
    const name = `seed ${graph.seed}, request ${number} with little memory`
    problems.push(...rig.left.map((left) => `${name}: ${left} left`))
  }
  return problems
}

/** @returns undefined where the order of things at the same time decides. */
function interpret(o: Interpretation, request: RequestSketch, at: number): Answer | undefined {
  try {
    const answer = interpretGraph(o, request, at)
    if (answer.end.at < Number.POSITIVE_INFINITY) return answer
    const { name: ensemble } = o.graph.top
    const text = `in ensemble '${ensemble}', left`
    const fault: Fault = {
      reason: 'CANCELLED',
      ensemble,
      texts: [text],
      executed: 'maybe',
      wasRetried: false,
    }
    return { responses: answer.responses, end: { at: answer.end.at, fault } }
  } catch (error) {
    if (error instanceof Undecided) return undefined
    throw error
  }
}

function compare({ responses, end }: Answer, got: RecordedResponses): string | undefined {
  const last = got.responses.at(-1)
  const answers = got.responses.filter(({ error }) => error === undefined)
  const wanted = withoutEmptyEnd(responses.map(({ outputs }) => showAll(outputs)))
  const made = withoutEmptyEnd(answers.map(({ outputs }) => showAll(toValues(outputs))))
  const difference = compareFault(end.fault, last)
  if (difference !== undefined) return difference
  if (wanted.join('; ') === made.join('; ')) return undefined
  return `got the responses ${made.join('; ')}, want ${wanted.join('; ')}`
}

/** A stream may end with a response that only says so. */
function withoutEmptyEnd(responses: readonly string[]): readonly string[] {
  return responses.slice(0, responses.findLastIndex((one) => one !== '') + 1)
}

function toValues(outputs: RecordedResponse['outputs']): Values {
  return new Map(outputs.map((output) => [output.name, toValue(output)]))
}

function showAll(outputs: Values): string {
  return [...outputs]
    .map(([name, value]) => `${name} ${show(value)}`)
    .toSorted()
    .join(', ')
}

function compareFault(
  wanted: Fault | undefined,
  got: RecordedResponse | undefined,
): string | undefined {
  const error = got?.error
  if (wanted === undefined) return error && `got ${error.reason}: ${error.message}, want an answer`
  if (error === undefined)
    return `got an answer, want ${wanted.reason}: ${wanted.texts.join(' or ')}`
  const { details, reason, message } = error
  const parts: readonly (readonly [string, string | undefined, readonly (string | undefined)[]])[] =
    [
      ['reason', reason, [wanted.reason]],
      ['text', message, wanted.texts],
      ['ensemble', details.ensemble, [wanted.ensemble]],
      ['step', details.step, [wanted.step]],
      ['model', details.model, [wanted.model]],
      ['item', details.item, [wanted.item]],
      ['within', details.within, [wanted.within]],
      ['first error', details.firstError, wanted.firstErrors ?? [undefined]],
    ]
  const odd = parts.find(([, is, any]) => !any.some((one) => matches(is, one)))
  if (odd === undefined) return undefined
  return `got ${odd[0]} ${odd[1]}, want ${odd[2].join(' or ')} (${reason}: ${message})`
}

/** @param pattern - in which `*` stands for any characters. */
function matches(text: string | undefined, pattern: string | undefined): boolean {
  if (text === undefined || pattern === undefined) return text === pattern
  const [first = '', ...others] = pattern.split('*')
  if (!text.startsWith(first)) return false
  let at = first.length
  for (const part of others) {
    const found = part === '' ? text.length : text.indexOf(part, at)
    if (found === -1) return false
    at = found + part.length
  }
  return others.length === 0 ? at === text.length : at >= text.length
}

/** Compares how often models were executed. */
function compareExecutions(
  o: Interpretation,
  got: ReadonlyMap<string, number>,
): string | undefined {
  if (o.isOpen) return undefined
  const wanted = o.executions
  const keys = [...new Set([...wanted.keys(), ...got.keys()])]
  const odd = keys.find((key) => wanted.get(key) !== got.get(key))
  if (odd === undefined) return undefined
  return `got ${got.get(odd) ?? 0} executions of ${odd}, want ${wanted.get(odd) ?? 0}`
}
