import type { IndexEntry } from '../backend/inference-backend.ts'
import { compareNames } from './listed-model.ts'

/**
 * The index of repositories whose models may be loaded later: those that never were are listed by name, and those that were
 * not served and are no longer there are not.
 *
 * @param listed - what is known of models that were to be served.
 * @param names - of all models that are there.
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

/** As Triton lists what was never loaded. */
function toUnknown(name: string): IndexEntry {
  return { name, version: '', state: '', reason: '' }
}
