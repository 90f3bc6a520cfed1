import { type Reason, ServeError } from '@tutti/errors'

/**
 * The exit code of `fetch` for each kind of failure, so that an operator can tell them apart; README.md has the same table. 1 is
 * everything else.
 */
export const FETCH_EXIT_CODES = {
  FLAG_INVALID: 2,
  SETTING_INVALID: 3,
  ARTIFACT_NOT_FOUND: 10,
  ARTIFACT_DENIED: 11,
  ARTIFACT_UNAVAILABLE: 12,
  ARTIFACT_UNTRUSTED: 13,
  ARTIFACT_MISMATCH: 14,
  ARTIFACT_INVALID: 15,
  ARTIFACT_TOO_LARGE: 16,
  ARTIFACT_NOT_STORED: 17,
} as const satisfies Partial<Record<Reason, number>>

export function toExitCode(error: unknown): number {
  const codes: ReadonlyMap<string, number> = new Map(Object.entries(FETCH_EXIT_CODES))
  return codes.get(ServeError.from(error).reason) ?? 1
}
