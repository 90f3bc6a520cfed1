import { ServeError } from '@tutti/errors'
import type { ModelConfig } from '@tutti/model-config'

/** Refuses a configuration that cannot be served. @throws ServeError MODEL_LOAD_FAILED, code INVALID_ARGUMENT. */
export function refuseConfig(field: string, text: string): never {
  throw new ServeError('MODEL_LOAD_FAILED', text, {
    code: 'INVALID_ARGUMENT',
    details: { field },
  })
}

/** Refuses a field of a model's configuration, as `refuseConfig`. @param problem - text of what was got and what is wanted. */
export function refuseField(model: string, field: string, problem: string): never {
  refuseConfig(field, `unable to load model '${model}', ${field}: ${problem}`)
}

/** Finds which of the paths (such as `optimization.cuda.graphs`) are set, each with the reason why it has no effect. */
export function findIneffective(config: ModelConfig, paths: readonly string[], why: string) {
  const valueAt = (path: string): unknown =>
    path.split('.').reduce((at: unknown, key) => Object(at)[key], config)
  return paths.filter((path) => isSet(valueAt(path))).map((path) => `${path}: ${why}`)
}

/** False for proto defaults, and for messages of nothing else. */
function isSet(value: unknown): boolean {
  if (Array.isArray(value)) return value.length > 0
  if (typeof value === 'object' && value !== null) return Object.values(value).some(isSet)
  return value !== 'PRIORITY_DEFAULT' && Boolean(value)
}
