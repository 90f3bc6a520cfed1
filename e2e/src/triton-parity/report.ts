import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Case } from './case.ts'
import type { Difference } from './compare.ts'

/** A case that differs, as small as it was found to be. */
export interface Finding {
  readonly test: Case
  readonly differences: readonly Difference[]
}

const SHOWN = 300

/** Writes what was found, for programs as JSON and for people as a list by kinds. */
export function writeReport(
  folder: string,
  name: string,
  findings: readonly Finding[],
  summary: object,
): void {
  mkdirSync(folder, { recursive: true })
  writeFileSync(
    join(folder, `${name}.json`),
    JSON.stringify({ ...summary, findings }, undefined, 1),
  )
  writeFileSync(join(folder, `${name}.txt`), listByKind(findings))
}

/** The list of findings for people, those with one cause together. */
export function listByKind(findings: readonly Finding[]): string {
  const kinds = Map.groupBy(
    findings.flatMap(({ test, differences }) =>
      differences.map((difference) => ({ test, difference })),
    ),
    ({ difference }) => difference.kind,
  )
  return [...kinds]
    .toSorted(([, a], [, b]) => b.length - a.length)
    .map(([kind, all]) => {
      const [first] = all
      if (first === undefined) return kind
      const call = JSON.stringify(first.test.calls[first.difference.call])
      return [
        `${all.length} x ${kind}`,
        `  ${first.test.id}: ${call.slice(0, SHOWN)}`,
        `  Triton: ${shown(first.difference.triton)}`,
        `  Tutti:  ${shown(first.difference.tutti)}`,
      ].join('\n')
    })
    .join('\n')
}

function shown(value: unknown): string {
  return (JSON.stringify(value) ?? 'nothing').slice(0, SHOWN)
}
