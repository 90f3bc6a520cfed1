import { type BeyondConfig, ModelOverrides, toBeyondConfig, toConfigOverrides } from '@tutti/api'
import { flagRefusal, readPairs } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { checkModelName, type ModelDirectory } from '@tutti/repository'
import type { OtherModels } from './model-flags.ts'
import type { StepFlags } from './step-flags.ts'

const DIRECTORY = '--model-directory'
const OVERRIDES = '--model-overrides'

/** Reads the models outside of repositories, and the overrides of configurations. @throws ServeError FLAG_INVALID */
export function readOtherModels(
  flags: Pick<StepFlags, 'model-directory' | 'model-overrides'>,
): Required<OtherModels> & { readonly beyond: BeyondConfig } {
  const said = readModelOverrides(flags['model-overrides'])
  return {
    directories: readModelDirectories(flags['model-directory']),
    overrides: toConfigOverrides(said),
    beyond: toBeyondConfig(said),
  }
}

/**
 * Reads the values of `--model-directory=NAME=DIR`.
 *
 * @throws ServeError FLAG_INVALID that names the value: without NAME or DIR, with a name that no model can have, or with a name
 * given twice.
 */
export function readModelDirectories(occurrences: readonly string[]): readonly ModelDirectory[] {
  return [...readNamed(DIRECTORY, occurrences, 'NAME=DIR')].map(([name, path]) => ({ name, path }))
}

/**
 * Reads the values of `--model-overrides=NAME=JSON`.
 *
 * @throws ServeError FLAG_INVALID that names the model and the field.
 */
export function readModelOverrides(
  occurrences: readonly string[],
): ReadonlyMap<string, ModelOverrides> {
  const texts = [...readNamed(OVERRIDES, occurrences, 'NAME=JSON')]
  return new Map(texts.map(([name, text]) => [name, parseOverrides(name, text)]))
}

function parseOverrides(name: string, text: string): ModelOverrides {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch (error) {
    throw flagRefusal(OVERRIDES, `"${name}": ${ServeError.from(error).message}`, error)
  }
  const parsed = ModelOverrides.safeParse(json)
  if (parsed.success) return parsed.data
  const faults = parsed.error.issues.map(({ path, message }) => [...path, message].join(': '))
  throw flagRefusal(OVERRIDES, `"${name}": ${faults.join('; ')}`, parsed.error)
}

function readNamed(
  flag: string,
  occurrences: readonly string[],
  wanted: string,
): ReadonlyMap<string, string> {
  const values = readPairs(flag, occurrences, wanted)
  try {
    for (const name of values.keys()) checkModelName(name)
  } catch (error) {
    throw flagRefusal(flag, ServeError.from(error).message, error)
  }
  return values
}
