import type { Test } from 'tap'

/** Runs subtests at the same time: they mostly wait for pods. */
export async function sideBySide(
  t: Test,
  subtests: Readonly<Record<string, (t: Test) => Promise<void>>>,
): Promise<void> {
  t.jobs = Object.keys(subtests).length
  await Promise.all(
    Object.entries(subtests).map(([name, run]) => t.test(name, { buffered: true }, run)),
  )
}
