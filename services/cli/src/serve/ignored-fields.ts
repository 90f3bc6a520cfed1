import type { Manifest, ModelManifest } from '@tutti/ensemble'

/** Fields of a Model that are about pods, and have no effect in one process. docs/serving-manifests.md lists them. */
export const IGNORED_MODEL_FIELDS = [
  'resources',
  'accelerator',
  'scaling',
  'rollout',
  'disruptionBudget',
  'podTemplate',
  'timeouts',
  'paused',
] as const satisfies readonly (keyof ModelManifest['spec'])[]

/** Of an Ensemble. */
export const IGNORED_ENSEMBLE_FIELDS = ['expose', 'paused'] as const

/** The fields that a manifest sets and that have no effect in one process. */
export function ignoredFields({ kind, spec }: Manifest): readonly string[] {
  const names: readonly string[] = kind === 'Model' ? IGNORED_MODEL_FIELDS : IGNORED_ENSEMBLE_FIELDS
  const set = new Map<string, unknown>(Object.entries(spec))
  return names.filter((name) => set.get(name) !== undefined)
}
