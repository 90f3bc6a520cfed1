import { ServeError } from '@tutti/errors'

/*
 * The texts of load requests (triton-semantics 3.3, 9.1, 9.2).
 */

/**
 * Makes the error for a model whose directory, configuration or overrides could not be read. It adds the reason to Triton's
 * text.
 */
export function pollFailed(model: string, cause: ServeError): ServeError {
  return new ServeError(
    'MODEL_POLL_FAILED',
    `failed to load '${model}', failed to poll from model repository: ${cause.message}`,
    { cause, details: { ...cause.details, model } },
  )
}

/** Makes the error for a model that was read and cannot be served. */
export function loadFailed(model: string, text: string, cause?: unknown): ServeError {
  return new ServeError('MODEL_LOAD_FAILED', `load failed for model '${model}': ${text}\n`, {
    code: 'INVALID_ARGUMENT',
    cause,
    details: { model },
  })
}

/** Describes what failed in a load with failed versions, one clause each. */
export function versionFailures(
  versions: readonly { readonly version: number; readonly reason: string }[],
): string {
  const clauses = versions.map((v) => `version ${v.version} is at UNAVAILABLE state: ${v.reason};`)
  return clauses.join('')
}

/** Makes the error of a load that a newer load or unload of the same model has overtaken. */
export function loadOvertaken(model: string): ServeError {
  const text =
    'Newer operation has been applied to the model lifecycle, current load operation is out-dated.'
  return new ServeError('MODEL_LOAD_OVERTAKEN', `load failed for model '${model}': ${text}\n`, {
    details: { model },
  })
}
