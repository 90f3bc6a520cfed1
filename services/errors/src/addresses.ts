import type { Reason } from './reasons.ts'

/** The address of the documentation and the JSON Schemas. No other place states it. */
export const SITE = 'https://tutti.dev'

/**
 * Builds the address of the documentation of a reason: its meaning, and what to do about it. The site forwards the address to
 * its newest version.
 */
export function helpAddress(reason: Reason): string {
  return `${SITE}/docs/errors/#${reason.toLowerCase()}`
}
