import { ServeError } from '@tutti/errors'

/** Settings of backends that came as `--backend-config`. */
export interface BackendConfig {
  /** `max_batch_size` of a model that can batch and names none. */
  readonly defaultMaxBatchSize: number
}

const FLAG = '--backend-config'
const DEFAULT_MAX_BATCH_SIZE = 4

/**
 * Reads tritonserver's `--backend-config=BACKEND,SETTING=VALUE`; an empty backend means all of them.
 *
 * @throws ServeError FLAG_INVALID for settings that are not known here: none is accepted and ignored.
 */
export function readBackendConfig(occurrences: readonly string[]): BackendConfig {
  let defaultMaxBatchSize = DEFAULT_MAX_BATCH_SIZE
  for (const text of occurrences) {
    const found = /^(?<backend>[^,]*),(?<setting>[^=]+)=(?<value>.*)$/.exec(text)?.groups
    if (found === undefined) throw refusal(text, 'want BACKEND,SETTING=VALUE')
    const { backend, setting, value } = found
    if (backend !== 'onnxruntime' && backend !== '') {
      throw refusal(text, `backend '${backend}' takes no settings here, want onnxruntime`)
    }
    if (setting !== 'default-max-batch-size') {
      throw refusal(text, `unknown setting '${setting}', want default-max-batch-size`)
    }
    const size = Number(value)
    if (!/^\d+$/.test(value ?? '') || size > 2 ** 31 - 1) {
      throw refusal(text, `'${value}', want a whole number from 0 to 2147483647`)
    }
    defaultMaxBatchSize = size
  }
  return { defaultMaxBatchSize }
}

function refusal(text: string, want: string): ServeError {
  return new ServeError('FLAG_INVALID', `flag ${FLAG}: "${text}": ${want}`, {
    details: { field: FLAG },
  })
}
