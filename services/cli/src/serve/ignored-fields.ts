import {
  DEFAULT_REPLICAS,
  type EnsembleManifest,
  type Manifest,
  type ModelManifest,
  POD_FIELDS,
} from '@tutti/api'

/** Fields of a Model that are about pods, and have no effect in one process. docs/serving-manifests.md lists them. */
export const IGNORED_MODEL_FIELDS = [
  ...POD_FIELDS,
  'timeouts',
  'placement',
  'runsWith',
  'suspend',
  'paused',
] as const satisfies readonly (keyof ModelManifest['spec'])[]

/** Fields of an Ensemble that have no effect in one process. */
export const IGNORED_ENSEMBLE_FIELDS = ['expose', 'placement', ...POD_FIELDS, 'paused'] as const

type Step = EnsembleManifest['spec']['steps'][number]

/** Fields of a step of an Ensemble that have no effect: one process has one replica of each model. */
export const IGNORED_STEP_FIELDS = ['hedge'] as const satisfies readonly (keyof Step)[]

/** Lists the fields of a manifest that are set and have no effect in one process. */
export function ignoredFields({ kind, spec }: Manifest): readonly string[] {
  if (kind === 'Model') {
    return IGNORED_MODEL_FIELDS.filter(
      (name) => spec[name] !== undefined && !isFilledIn(name, spec),
    )
  }
  const { steps } = spec
  return [
    ...IGNORED_ENSEMBLE_FIELDS.filter((name) => spec[name] !== undefined),
    ...IGNORED_STEP_FIELDS.filter((name) => steps.some((step) => step[name] !== undefined)),
  ]
}

/** True for `scaling` as the API server fills it in, which `kubectl get -o yaml` shows of every Model. */
function isFilledIn(name: string, { scaling = {} }: ModelManifest['spec']): boolean {
  const { replicas, ...others } = scaling
  return name === 'scaling' && replicas === DEFAULT_REPLICAS && Object.keys(others).length === 0
}
