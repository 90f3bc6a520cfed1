import { flagRefusal } from '@tutti/chassis'

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }
const PART = /(\d+(?:\.\d+)?)(ms|s|m|h)/g
/** Longer ones are no setting: Node's timers end after 24 days. */
const LONGEST_MS = 24 * 3_600_000

/**
 * Reads a time as kubectl does: `90s`, `1h30m`, `500ms`, or a number of seconds.
 *
 * @param flag - name of the flag with its dashes, for the message.
 * @returns whole milliseconds; 0 only for a time of zero.
 * @throws ServeError FLAG_INVALID
 */
export function parseDuration(flag: string, text: string): number {
  const ms = toMs(text)
  if (ms === undefined || ms > LONGEST_MS) {
    throw flagRefusal(flag, `"${text}", want a time such as 90s, 5m or 1h30m, at most 24h`)
  }
  return ms
}

function toMs(text: string): number | undefined {
  if (/^\d+$/.test(text)) return Number(text) * 1000
  if (text === '' || text.replaceAll(PART, '') !== '') return undefined
  const parts = [...text.matchAll(PART)].map(
    ([, count, unit = '']) => Number(count) * (UNITS[unit] ?? 0),
  )
  const ms = parts.reduce((sum, part) => sum + part, 0)
  return ms > 0 ? Math.max(1, Math.round(ms)) : 0
}
