import type { Test } from 'tap'

/** At once: each has an operator of its own, and all of them one process and one API server. */
const AT_ONCE = 4

/** Runs subtests side by side, as most of their time they wait for Kubernetes. Each is in a namespace of its own. */
export async function sideBySide(
  t: Test,
  subtests: Readonly<Record<string, (t: Test) => Promise<void>>>,
): Promise<void> {
  t.jobs = AT_ONCE
  await Promise.all(
    Object.entries(subtests).map(([name, run]) => t.test(name, { buffered: true }, run)),
  )
}
