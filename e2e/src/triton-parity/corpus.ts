import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gunzipSync, gzipSync } from 'node:zlib'
import { unaccepted } from './accepted.ts'
import type { Answer, Case } from './case.ts'
import { comparable } from './comparable.ts'
import { compare, type Difference } from './compare.ts'

const CORPUS = fileURLToPath(new URL('corpus/triton-2.51.jsonl.gz', import.meta.url))
const KNOWN = fileURLToPath(new URL('corpus/known.json', import.meta.url))

/** A case with what a real Triton answered. */
export interface Recorded {
  readonly test: Case
  readonly answers: readonly Answer[]
}

/** The corpus: JSON lines, compressed. */
export function readCorpus(): readonly Recorded[] {
  const lines = gunzipSync(readFileSync(CORPUS)).toString().trimEnd().split('\n')
  return lines.map((line): Recorded => JSON.parse(line))
}

export function writeCorpus(recorded: readonly Recorded[]): void {
  mkdirSync(dirname(CORPUS), { recursive: true })
  const lines = recorded.map((one) => `${JSON.stringify(one)}\n`)
  writeFileSync(CORPUS, gzipSync(lines.join(''), { level: 9 }))
}

/** Kind of a difference -> the cases that show it first and are not mended yet. */
export type Known = Readonly<Record<string, readonly string[]>>

export function readKnown(): Known {
  return existsSync(KNOWN) ? JSON.parse(readFileSync(KNOWN, 'utf8')) : {}
}

/** Writes the cases that differ, by kinds. Cases that were not known are written only if nothing was: the list shrinks. */
export function writeKnown(found: ReadonlyMap<string, readonly Difference[]>): void {
  const before = new Set(Object.values(readKnown()).flat())
  const kept = [...found].filter(([id]) => before.size === 0 || before.has(id))
  const kinds = Map.groupBy(kept, ([, [first]]) => first?.kind ?? '')
  const entries = [...kinds]
    .map(([kind, cases]) => [kind, cases.map(([id]) => id).toSorted()] as const)
    .toSorted(([a, { length: m }], [b, { length: n }]) => n - m || (a < b ? -1 : 1))
  writeFileSync(KNOWN, `${JSON.stringify(Object.fromEntries(entries), undefined, 2)}\n`)
}

/** Finds what of a recorded case differs, and is not accepted. */
export function differencesFrom(
  { test, answers }: Recorded,
  tutti: readonly Answer[],
): readonly Difference[] {
  // Recorded answers have no member that is undefined.
  const plain: readonly Answer[] = JSON.parse(JSON.stringify(tutti))
  // Less may be compared now than when they were recorded.
  const wanted = answers.map((answer, at) => {
    const call = test.calls[at]
    return call === undefined ? answer : comparable(call, answer, 'REPOSITORY')
  })
  return unaccepted(test, compare(test, wanted, plain))
}
