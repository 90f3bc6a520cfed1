import type { RequestedOutput } from '../inference-backend.ts'

/** The names that a request asks for; a duplicate is accepted and answered once, as measured on Triton 2.51. */
export function requestedNames(outputs: readonly RequestedOutput[]): readonly string[] {
  const names = outputs.map((output) => output.name)
  return names.length < 2 ? names : [...new Set(names)]
}
