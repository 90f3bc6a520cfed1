import type { ModelConfig } from '@tutti/model-config'
import { type Callee, fallbackOf } from '../call-rules.ts'
import type { Graph, GraphStep } from '../graph.ts'
import type { ConfigOfStep } from './find-tensor-faults.ts'

/** A graph whose further steps are the fallbacks of the others. */
export interface GraphWithFallbacks {
  readonly graph: Graph
  /** The indexes of the steps, for a fallback that of its step. */
  readonly stepOf: readonly number[]
}

/**
 * Adds the fallbacks of a graph's steps as steps of their own, behind all others: each takes and makes the tensors of its step, so that
 * a comparison of tensors finds where it differs. Those of steps whose model is not known are left out.
 */
export function addFallbacks(graph: Graph, configOf: ConfigOfStep): GraphWithFallbacks {
  const stepOf = [...graph.steps.keys()]
  const steps = [...graph.steps]
  for (const [index, step] of graph.steps.entries()) {
    const fallback = fallbackOf(step.call ?? {})
    if (fallback === undefined || configOf(step) === undefined) continue
    stepOf.push(index)
    steps.push(withCallee(step, fallback))
  }
  return { graph: { ...graph, steps }, stepOf }
}

/** Finds the configuration of a step's fallback; undefined if it has none, or it is not known. */
export function fallbackConfig(step: GraphStep, configOf: ConfigOfStep): ModelConfig | undefined {
  const fallback = fallbackOf(step.call ?? {})
  return fallback && configOf(withCallee(step, fallback))
}

/** Lets a step run another model, and no built-in. */
function withCallee(step: GraphStep, { model, version }: Callee): GraphStep {
  const { builtin: _, ...rest } = step
  return { ...rest, model, version }
}
