import { emptyModelConfig, type ModelConfig } from '@tutti/model-config'
import { BUILTIN_BACKEND } from './to-model-config.ts'

/**
 * Name of the model that every replica with built-ins describes. Routers find, pin and choose it like any other model. The name fits no
 * resource and no directory, and clients do not see it.
 */
export const BUILTIN_HOST = '/builtins'
/** Its one version. */
export const BUILTIN_HOST_VERSION = 1

/**
 * Its revision in every release: a built-in that has once been in a release goes on to give the same, so that requests move between
 * replicas of two releases while one replaces the other.
 */
export const BUILTIN_REVISION = 'builtins'

/** Its configuration, which says nothing of inputs and outputs: each request names the step that it is for. */
export const BUILTIN_HOST_CONFIG: ModelConfig = {
  ...emptyModelConfig(BUILTIN_HOST),
  backend: BUILTIN_BACKEND,
}
