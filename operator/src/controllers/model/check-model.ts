import { type ModelSpec, nameConflict } from '@tutti/ensemble'
import type { KubeObject, Stored } from '@tutti/kube'
import type { ModelObject } from '../../api/kinds.ts'
import { parseArtifactSource } from '../../resources/model-artifacts.ts'
import type { StepSettings } from '../../resources/step-settings.ts'
import { servedNameOf } from '../served-names.ts'
import { readModelSpec } from './read-model-spec.ts'

/** Why nothing is changed for a Model. `condition` is the one that says so. */
export interface Refusal {
  readonly condition: 'Accepted' | 'ArtifactsReady'
  readonly reason: string
  readonly message: string
}

/** What a Model is checked by before anything is made for it. */
export interface ModelCheckInput {
  readonly model: Stored<ModelObject>
  /** Who has its served name. */
  readonly rival: Stored<KubeObject> | undefined
  readonly settings: Pick<StepSettings, 'allowsHostPath'>
  /** True if the Secret that `storage.secretRef` names is there. */
  readonly hasSecret: boolean
}

export type CheckedModel =
  | { readonly spec: ModelSpec; readonly refusal?: undefined }
  /** `spec` is there if it could be read. */
  | { readonly spec?: ModelSpec; readonly refusal: Refusal }

/** The checks in order; the first that fails decides. Pure. */
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

const CHECKS: readonly Check[] = [checkName, checkHostPath, checkSecret]

function checkName(_spec: ModelSpec, { model, rival }: ModelCheckInput): Refusal | undefined {
  if (rival === undefined) return undefined
  return refuse('NameConflict', `modelName: ${nameConflict(servedNameOf(model), rival)}`)
}

function checkHostPath(
  { storageUri, podTemplate }: ModelSpec,
  { settings }: ModelCheckInput,
): Refusal | undefined {
  if (settings.allowsHostPath) return undefined
  if (parseArtifactSource(storageUri).kind === 'hostPath') {
    return refuseHostPath(`storageUri: '${storageUri}'`, 'pvc://, http(s):// or s3://')
  }
  const index = volumesOf(podTemplate?.spec).findIndex((volume) => isSet(Object(volume).hostPath))
  return index < 0
    ? undefined
    : refuseHostPath(`podTemplate.spec.volumes[${index}].hostPath`, 'another kind of volume')
}

function refuseHostPath(place: string, wanted: string): Refusal {
  const text = `${place} is a folder of the node, which this installation does not allow: want ${wanted}, or the operator's flag --allow-host-path`
  return refuse('HostPathNotAllowed', text)
}

/** What a person wrote there may be anything. */
function volumesOf(podSpec: Readonly<Record<string, unknown>> | undefined): readonly unknown[] {
  const volumes: unknown = podSpec?.['volumes']
  return Array.isArray(volumes) ? volumes : []
}

function isSet(field: unknown): boolean {
  return field !== undefined && field !== null
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
