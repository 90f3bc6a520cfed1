import type { ModelStart } from './status.ts'

const LOAD = 'its load: '

/** Builds the message of a start whose process says what its load does now. */
export function loadMessage(doing: string): string {
  return `${LOAD}${doing}`
}

/** Tells whether a start has the message of `loadMessage`: its process answers, and loads. */
export function isToldByProcess({ waitsFor, message }: ModelStart): boolean {
  return waitsFor === 'Load' && message.startsWith(LOAD)
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
