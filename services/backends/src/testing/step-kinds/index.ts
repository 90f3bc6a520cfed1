import { DETECTOR_KINDS } from './detectors.ts'
import { OTHER_KINDS } from './not-expressed.ts'
import { PICTURE_KINDS } from './pictures.ts'
import type { StepKind } from './step-kind.ts'
import { TEXT_MAP_KINDS } from './text-maps.ts'
import { TEXT_KINDS } from './texts.ts'
import { VECTOR_KINDS } from './vectors.ts'

export { type ChainStep, portsOf, type StepChain, type StepKind } from './step-kind.ts'

/** The 68 Python steps of ensembles in 28 public repositories (counted on 2026-11-29), rebuilt from their ports and the words in their files. */
export const STEP_KINDS: readonly StepKind[] = [
  ...DETECTOR_KINDS,
  ...PICTURE_KINDS,
  ...TEXT_KINDS,
  ...TEXT_MAP_KINDS,
  ...VECTOR_KINDS,
  ...OTHER_KINDS,
]
