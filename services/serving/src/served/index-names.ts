import type { IndexEntry } from '../backend/inference-backend.ts'
import { compareNames } from './listed-model.ts'

/**
 * Builds the index of repositories whose models may be loaded later. It adds models that were never loaded, and leaves out
 * UNAVAILABLE models that are no longer in the repositories.
 *
 * @param listed - the entries of models that were to be served.
 * @param names - the names of all models in the repositories.
 */
export function withNames(
  listed: readonly IndexEntry[],
  names: readonly string[],
): readonly IndexEntry[] {
  const others = new Set(names)
  const served = listed.filter(({ name, state }) => others.has(name) || state !== 'UNAVAILABLE')
  for (const { name } of served) others.delete(name)
  const unknown = [...others].map(toUnknown)
  return [...served, ...unknown].toSorted((a, b) => compareNames(a.name, b.name))
}

/** Makes the entry of a model that was never loaded, as Triton lists it. */
function toUnknown(name: string): IndexEntry {
  return { name, version: '', state: '', reason: '' }
}
