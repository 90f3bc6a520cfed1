import { type ModelSpec, modelNameOf } from '@tutti/api'
import { childName } from './names.ts'
import type { StepPodSettings } from './step-settings.ts'

/** The facts from which the children of a Model are built. */
export interface ModelFacts {
  /** Name of the Model, its metadata.name. */
  readonly name: string
  readonly namespace: string
  readonly spec: ModelSpec
  /** The name by which clients call the Model. */
  readonly modelName: string
  /** Name of the children. */
  readonly childName: string
  readonly settings: StepPodSettings
  /** Labels of the Model for its pods, see podLabelsOf. */
  readonly labels?: Readonly<Record<string, string>>
  /** Digest of the Secret with which artifacts are fetched; absent without one. */
  readonly credentialsDigest?: string
}

export function toModelFacts(o: {
  readonly name: string
  readonly namespace: string
  readonly spec: ModelSpec
  readonly settings: StepPodSettings
  readonly labels?: Readonly<Record<string, string>>
  readonly credentialsDigest?: string
}): ModelFacts {
  const { name, spec } = o
  const modelName = modelNameOf({ metadata: { name }, spec })
  return { ...o, modelName, childName: childName(name, 'step') }
}
