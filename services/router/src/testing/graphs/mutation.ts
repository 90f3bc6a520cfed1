import type { ModelConfig } from '@tutti/model-config'
import type { EnsembleSketch } from './sketch.ts'
import type { SpecDraft } from './spec-draft.ts'

/** A valid ensemble that is to be broken. */
export interface Subject {
  readonly ensemble: EnsembleSketch
  /** Configurations of models and ensembles, by name. */
  readonly configs: ReadonlyMap<string, ModelConfig>
}

/** A change that breaks an ensemble in one place, and how it is refused. */
export interface Mutant {
  /** Changes the spec. */
  readonly change?: (spec: SpecDraft) => void
  /** Replaces configurations of models. */
  readonly configs?: readonly ModelConfig[]
  /** Names of models that are not known yet. */
  readonly pending?: readonly string[]
  readonly reason: string
  readonly path: string
}

/** A kind of change. */
export interface Mutation {
  readonly name: string
  /** Lists the changes of this kind that an ensemble can have, one for each place. */
  readonly find: (subject: Subject) => readonly Mutant[]
}
