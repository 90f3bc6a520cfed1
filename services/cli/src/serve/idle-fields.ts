import type { Manifest, ModelManifest } from '@tutti/ensemble'

/** Fields of a Model that are about pods, and mean nothing where there are none. docs/serving-manifests.md lists them. */
export const IDLE_MODEL_FIELDS = [
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
export const IDLE_ENSEMBLE_FIELDS = ['expose', 'paused'] as const

/** The fields that a manifest sets and that have no effect in one process. */
export function idleFields({ kind, spec }: Manifest): readonly string[] {
  const names: readonly string[] = kind === 'Model' ? IDLE_MODEL_FIELDS : IDLE_ENSEMBLE_FIELDS
  const set = new Map<string, unknown>(Object.entries(spec))
  return names.filter((name) => set.get(name) !== undefined)
}
