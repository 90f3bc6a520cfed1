import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '@tutti/chassis/testing'
import type { Test } from 'tap'
import { memoryRoot } from './memory.ts'

/** A control group whose processes the kernel ends if they take more memory together than the group may have. */
export interface MemoryGroup {
  /** Words before a command that have it run in the group. */
  readonly within: readonly string[]
  /** Puts a process into the group that runs already. What it has taken before stays uncounted. */
  take(pid: number): void
  /** Bytes that the group had at most, files that the kernel keeps for it included. */
  peakBytes(): number
}

let made = 0

/** Makes a group for processes that end before the test does. See `withoutMemoryLimits` for where there are none. */
export function createMemoryGroup(t: Test, limitBytes: number): MemoryGroup {
  const [root, limit] = memoryRoot() ?? ['', '']
  const group = join(root, `tutti-${process.pid}-${++made}`)
  mkdirSync(group)
  // Processes that start later are stopped before: teardowns run in reverse.
  t.teardown(() => until('the group is empty', () => isRemoved(group)))
  writeFileSync(join(group, limit), String(limitBytes))
  const members = join(group, 'cgroup.procs')
  const peak = join(group, limit === 'memory.max' ? 'memory.peak' : 'memory.max_usage_in_bytes')
  return {
    within: ['sh', '-c', `echo $$ > ${members}; exec "$@"`, 'sh'],
    take: (pid) => writeFileSync(members, String(pid)),
    peakBytes: () => Number(readFileSync(peak, 'utf8')),
  }
}

function isRemoved(group: string): boolean {
  try {
    rmdirSync(group)
    return true
  } catch {
    return false
  }
}
