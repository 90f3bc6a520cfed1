/** Ratios that a bench compared, by name; above 1, or more than before, is better. */
export type Ratios = Readonly<Record<string, number>>

/** The ratios of a release, in bench/history.json. */
export interface HistoryEntry {
  readonly version: string
  /** Date of the last measurement, as 2026-11-26. */
  readonly date: string
  readonly commit: string
  readonly ratios: Ratios
}

/** Releases in their order. */
export type History = readonly HistoryEntry[]

/** Share that a ratio may lose between two releases before a run says so. */
const LOSS = 0.1

/**
 * Compares ratios with the last release that has each.
 *
 * @returns a line for each that is more than a tenth below.
 */
export function findLosses(history: History, ratios: Ratios): readonly string[] {
  return Object.entries(ratios).flatMap(([name, ratio]) => {
    const last = history.findLast((entry) => Object.hasOwn(entry.ratios, name))
    const before = last?.ratios[name]
    if (last === undefined || before === undefined || ratio >= before * (1 - LOSS)) return []
    const percent = Math.round((1 - ratio / before) * 100)
    const entry = `${last.version}, ${last.date}`
    return [`${name}: ${round(ratio)}, ${percent} % below the ${round(before)} of ${entry}`]
  })
}

/**
 * Puts ratios into the entry of their release, which is the last one or a new one.
 *
 * @param now - the release, and when and of which commit the ratios are.
 */
export function record(
  history: History,
  now: Omit<HistoryEntry, 'ratios'>,
  ratios: Ratios,
): History {
  const last = history.at(-1)
  const isSame = last?.version === now.version
  const before = isSame ? history.slice(0, -1) : history
  const rounded = Object.entries(ratios).map(([name, ratio]) => [name, round(ratio)] as const)
  const all = { ...(isSame ? last.ratios : {}), ...Object.fromEntries(rounded) }
  return [...before, { ...now, ratios: all }]
}

const round = (ratio: number): number => Number(ratio.toPrecision(3))
