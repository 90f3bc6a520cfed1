/** Endings of what editors and Python leave behind for a while. */
const IGNORED_ENDINGS = ['~', '.swp', '.swo', '.swx', '.tmp', '.pyc', '.pyo'] as const

/**
 * True for names that do not belong to a model: dot files, and what serving or editing it writes. Python puts `__pycache__`
 * there when a model loads: counting it would make a revision change by serving.
 */
export function isIgnored(name: string): boolean {
  if (name.startsWith('.') || name === '__pycache__') return true
  if (name.startsWith('#') && name.endsWith('#')) return true
  return IGNORED_ENDINGS.some((ending) => name.endsWith(ending))
}
