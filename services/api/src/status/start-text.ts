import type { ModelStart } from './status.ts'

/** Tells whether a process says how far its load is: it lives, and nothing is wrong with it. */
export function isToldByProcess({ waitsFor, message }: ModelStart): boolean {
  return waitsFor === 'Load' && message.startsWith('its load: ')
}

/**
 * Builds one short text of how far a start is, for errors and people: `waits for its files, 30 % of 4.3 GB (12 s)`. Pure.
 *
 * @param nowMs - milliseconds since the epoch.
 */
export function startText({ message, since }: ModelStart, nowMs: number): string {
  const seconds = Math.max(0, Math.round((nowMs - Date.parse(since)) / 1000))
  return `waits for ${message} (${seconds} s)`
}
