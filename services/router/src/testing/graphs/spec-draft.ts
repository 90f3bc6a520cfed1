import { toSpec } from './print-graph.ts'
import type { EnsembleSketch } from './sketch.ts'

/* The spec of an Ensemble as somebody may change it, as far as drawn graphs use it. */

export interface ConstantDraft {
  datatype: string
  shape: number[]
  value: (number | string | boolean)[]
}

export interface CalleeDraft {
  modelRef?: { name: string; version?: number }
  ensembleRef?: { name: string }
}

export interface StepDraftSpec extends CalleeDraft {
  name: string
  inputMap?: Record<string, string>
  firstOf?: Record<string, string[]>
  constants?: Record<string, ConstantDraft>
  parameters?: Record<string, string | number>
  dependsOn?: string[]
  outputMap?: Record<string, string>
  when?: string
  forEach?: {
    items: Record<string, string>
    count?: string
    maxItems: number
    gather: 'Stack' | 'Concat'
    onItemError?: { default: Record<string, ConstantDraft> }
  }
  loop?: { carry: Record<string, string>; until?: string; maxIterations: number }
  retry?: { maxRetries: number; retryOn: string[] }
  hedge?: { after: string }
  mayRunTwice?: boolean
  onError?: { fallback?: CalleeDraft; default?: Record<string, ConstantDraft> }
}

export interface SpecDraft {
  maxBatchSize?: number
  inputs: {
    name: string
    datatype: string
    shape: number[]
    optional?: boolean
    default?: ConstantDraft
  }[]
  outputs: {
    name: string
    datatype: string
    shape: number[]
    from?: string
    firstOf?: string[]
    optional?: boolean
  }[]
  steps: StepDraftSpec[]
}

/** Writes an ensemble as a spec that may be changed. */
export function toDraft(ensemble: EnsembleSketch): SpecDraft {
  return structuredClone(toSpec(ensemble)) as unknown as SpecDraft
}
