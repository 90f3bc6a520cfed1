import { type ModelSpec, modelNameOf } from '@tutti/api'
import { childName } from './names.ts'
import type { StepSettings } from './step-settings.ts'

/** What the children of a Model are built from. */
export interface ModelParts {
  /** metadata.name. */
  readonly name: string
  readonly namespace: string
  readonly spec: ModelSpec
  /** What clients call it. */
  readonly modelName: string
  /** Of the children. */
  readonly childName: string
  readonly settings: StepSettings
  /** Of the Secret that artifacts are fetched with. */
  readonly credentialsDigest?: string
}

export function toModelParts(o: {
  readonly name: string
  readonly namespace: string
  readonly spec: ModelSpec
  readonly settings: StepSettings
  readonly credentialsDigest?: string
}): ModelParts {
  const { name, spec } = o
  const modelName = modelNameOf({ metadata: { name }, spec })
  return { ...o, modelName, childName: childName(name, 'step') }
}
