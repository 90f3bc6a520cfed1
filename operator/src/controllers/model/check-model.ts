import { type ModelSpec, nameConflict } from '@tutti/api'
import type { KubeObject, Stored } from '@tutti/kube'
import type { ModelObject } from '../../api/kinds.ts'
import { parseArtifactSource } from '../../resources/artifact-source.ts'
import type { StepPodSettings } from '../../resources/step-settings.ts'
import { findHostAccess, toHostAccessText } from '../host-access.ts'
import { servedNameOf } from '../served-names.ts'
import { readModelSpec } from './read-model-spec.ts'

/** The reason why the operator changes nothing for a Model. `condition` is the condition that reports it. */
export interface Refusal {
  readonly condition: 'Accepted' | 'ArtifactsReady'
  readonly reason: string
  readonly message: string
}

/** The input of the checks that a Model must pass before its children are written. */
export interface ModelCheckInput {
  readonly model: Stored<ModelObject>
  /** Other resource that holds the Model's served name; undefined if the Model holds it. */
  readonly rival: Stored<KubeObject> | undefined
  readonly settings: Pick<StepPodSettings, 'allowsHostAccess'>
  /** True if the Secret in `storage.secretRef` exists. */
  readonly hasSecret: boolean
  /** Refusal of the Model's claims, as `findClaimRefusal` gives it. */
  readonly claimRefusal: Refusal | undefined
  /** Refusal of the pods that it asks for, as `PodGroups.placementOf` gives it. */
  readonly placementRefusal: Refusal | undefined
}

export type CheckedModel =
  | { readonly spec: ModelSpec; readonly refusal?: undefined }
  /** Refused Model; `spec` is absent if it cannot be read. */
  | { readonly spec?: ModelSpec; readonly refusal: Refusal }

/** Checks a Model in order: spec, served name, host, access to nodes, claims, Secret. The first check that fails gives the refusal. Pure. */
export function checkModel(input: ModelCheckInput): CheckedModel {
  const { spec, problem } = readModelSpec(input.model)
  if (spec === undefined) return { refusal: refuse('InvalidSpec', problem) }
  for (const check of CHECKS) {
    const refusal = check(spec, input)
    if (refusal !== undefined) return { spec, refusal }
  }
  return { spec }
}

type Check = (spec: ModelSpec, input: ModelCheckInput) => Refusal | undefined

const CHECKS: readonly Check[] = [
  checkName,
  (_spec, { placementRefusal }) => placementRefusal,
  checkHostAccess,
  (_spec, { claimRefusal }) => claimRefusal,
  checkSecret,
]

function checkName(_spec: ModelSpec, { model, rival }: ModelCheckInput): Refusal | undefined {
  if (rival === undefined) return undefined
  return refuse('NameConflict', `modelName: ${nameConflict(servedNameOf(model), rival)}`)
}

function checkHostAccess(
  { storageUri, podTemplate }: ModelSpec,
  { settings }: ModelCheckInput,
): Refusal | undefined {
  if (settings.allowsHostAccess) return undefined
  const found =
    parseArtifactSource(storageUri).kind === 'hostPath'
      ? {
          place: 'storageUri',
          got: `'${storageUri}'`,
          want: 'pvc://, image://, http(s):// or s3://',
        }
      : findHostAccess(podTemplate)
  if (found === undefined) return undefined
  return refuse('HostAccessNotAllowed', toHostAccessText(found))
}

function checkSecret({ storage }: ModelSpec, { hasSecret }: ModelCheckInput): Refusal | undefined {
  const name = storage?.secretRef?.name
  if (name === undefined || hasSecret) return undefined
  return {
    condition: 'ArtifactsReady',
    reason: 'SecretNotFound',
    message: `storage.secretRef.name: there is no Secret "${name}" in the namespace; pods stay as they are until there is`,
  }
}

function refuse(reason: string, message: string): Refusal {
  return { condition: 'Accepted', reason, message }
}
