import type { Reason } from './reasons.ts'

/** Where the documentation and the JSON Schemas are published: no other place says it. */
export const SITE = 'https://tutti.dev'

/** Where it stands what a reason means and what to do about it. The site forwards the address to its newest version. */
export function helpAddress(reason: Reason): string {
  return `${SITE}/docs/errors/#${reason.toLowerCase()}`
}
