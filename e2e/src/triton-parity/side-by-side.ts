import type { Test } from 'tap'
import { nameOf, unaccepted } from './accepted.ts'
import type { Case } from './case.ts'
import { compare, type Difference } from './compare.ts'
import type { Finding } from './report.ts'
import { startTriton, startTuttiServer } from './servers.ts'
import { shrink } from './shrink.ts'

/** How the cases of a run went. */
export interface Outcome {
  readonly ran: number
  /** Those that have ended Triton. */
  readonly lost: readonly string[]
  /** Name of an accepted difference -> how often it was seen. */
  readonly accepted: Readonly<Record<string, number>>
  readonly findings: readonly Finding[]
}

/** One finding of each kind is made small. */
export async function runSideBySide(
  t: Test,
  program: string,
  cases: Iterable<Case>,
): Promise<Outcome> {
  const [triton, tutti] = await Promise.all([startTriton(t, program), startTuttiServer(t)])
  const accepted: Record<string, number> = {}
  const lost: string[] = []
  const findings: Finding[] = []
  const kinds = new Set<string>()
  let ran = 0
  const differencesOf = async (test: Case): Promise<readonly Difference[] | undefined> => {
    const wanted = await triton.run(test)
    return wanted === undefined ? undefined : compare(test, wanted, await tutti.run(test))
  }
  for (const test of cases) {
    ran += 1
    const differences = await differencesOf(test)
    if (differences === undefined) lost.push(test.id)
    for (const difference of differences ?? []) {
      const name = nameOf(difference, test)
      if (name !== undefined) accepted[name] = (accepted[name] ?? 0) + 1
    }
    const left = unaccepted(test, differences ?? [])
    const fresh = left.find(({ kind }) => !kinds.has(kind))
    for (const { kind } of left) kinds.add(kind)
    if (fresh === undefined) {
      if (left.length > 0) findings.push({ test, differences: left })
      continue
    }
    const small = await shrink(test, async (smaller) => {
      const again = await differencesOf(smaller)
      return again?.some(({ kind }) => kind === fresh.kind) === true
    })
    findings.push({
      test: small,
      differences: unaccepted(small, (await differencesOf(small)) ?? left),
    })
  }
  return { ran, lost, accepted, findings }
}
