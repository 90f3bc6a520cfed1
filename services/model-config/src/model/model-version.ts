import { ServeError } from '@tutti/errors'
import type { ModelConfig } from './model-config.ts'

const GREATEST_INT64 = 2n ** 63n - 1n

/**
 * Chooses the versions that a model serves by its version policy. Without a policy that is the latest version, as in Triton.
 *
 * @param available - numbers of the version directories, in any order.
 * @returns versions in ascending order, at least one. Versions that `specific` names but that do not exist are left out.
 * @throws ServeError CONFIG_INVALID with Triton's text if no version is left.
 */
export function selectVersions(
  config: Pick<ModelConfig, 'name' | 'version_policy'>,
  available: readonly number[],
): readonly number[] {
  const selected = chooseVersions(config.version_policy, available)
  if (selected.length > 0) return selected
  throw new ServeError(
    'CONFIG_INVALID',
    `at least one version must be available under the version policy of model '${config.name}'`,
    { details: { model: config.name, field: 'version_policy' } },
  )
}

/** Chooses versions as `selectVersions` does, but returns an empty list instead of throwing if none is left. */
export function chooseVersions(
  policy: ModelConfig['version_policy'],
  available: readonly number[],
): readonly number[] {
  const ascending = [...new Set(available)].toSorted((a, b) => a - b)
  if (policy?.all !== undefined) return ascending
  if (policy?.specific !== undefined) {
    const wanted = new Set(policy.specific.versions)
    return ascending.filter((version) => wanted.has(version))
  }
  // As in Triton: a policy without a choice is all, and a `latest` without a number is none.
  if (policy !== undefined && policy.latest === undefined) return ascending
  const count = policy === undefined ? 1 : (policy.latest?.num_versions ?? 0)
  return ascending.slice(Math.max(0, ascending.length - count))
}

/**
 * Parses the version of a request as C++'s `stoll` does: blanks and a sign may lead, digits count, and the rest is ignored
 * ("1x", " 1" and "01" are 1).
 *
 * @returns undefined for '', which means the latest ready version; otherwise a number of at least 0. 0 is valid, but is found
 *   only if a version directory has that name.
 * @throws ServeError INVALID_VERSION for text without a leading number, and for negative numbers.
 */
export function parseModelVersion(text: string): number | undefined {
  if (text === '') return undefined
  const value = leadingInteger(text)
  const wanted = 'version should be an integral value > 0'
  if (value === undefined || value > GREATEST_INT64 || value < -GREATEST_INT64 - 1n) {
    const message = `failed to get model version from specified version string '${text}' (details: stol), ${wanted}`
    throw new ServeError('INVALID_VERSION', message)
  }
  if (value < 0n) {
    throw new ServeError('INVALID_VERSION', `invalid model version specified '${text}' , ${wanted}`)
  }
  return Number(value)
}

/** Formats the version that a request names, for texts. It keeps all digits, because numbers are exact only up to 2^53. */
export function formatModelVersion(text: string): string {
  return String(leadingInteger(text) ?? text)
}

function leadingInteger(text: string): bigint | undefined {
  const digits = /^[ \t\n\v\f\r]*([+-]?[0-9]+)/.exec(text)?.[1]
  // BigInt takes a minus sign but no plus sign.
  return digits === undefined ? undefined : BigInt(digits.replace('+', ''))
}
