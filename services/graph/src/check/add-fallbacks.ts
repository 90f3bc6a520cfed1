import type { ModelConfig } from '@tutti/model-config'
import { fallbackOf } from '../call-rules.ts'
import type { Graph } from '../graph.ts'
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
    const { model, version } = fallback
    stepOf.push(index)
    steps.push({ ...step, model, version })
  }
  return { graph: { ...graph, steps }, stepOf }
}

/** Finds the configuration of a step's fallback; undefined if it has none, or it is not known. */
export function fallbackConfig(
  step: Graph['steps'][number],
  configOf: ConfigOfStep,
): ModelConfig | undefined {
  const fallback = fallbackOf(step.call ?? {})
  return fallback && configOf({ ...step, model: fallback.model, version: fallback.version })
}
