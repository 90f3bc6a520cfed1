import type { Test } from 'tap'

/** At once: each has an operator of its own, and all of them one process and one API server. */
const AT_ONCE = 4

/** Runs four subtests at once, because they mostly wait for Kubernetes. Each must use its own namespace. */
export async function sideBySide(
  t: Test,
  subtests: Readonly<Record<string, (t: Test) => Promise<void>>>,
): Promise<void> {
  t.jobs = AT_ONCE
  await Promise.all(
    Object.entries(subtests).map(([name, run]) => t.test(name, { buffered: true }, run)),
  )
}
