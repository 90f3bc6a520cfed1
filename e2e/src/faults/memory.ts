import { existsSync, readFileSync } from 'node:fs'
import { mkdir, rmdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { until } from '@tutti/chassis/testing'
import { PYTHON } from '../triton-client.ts'
import { command } from './own-namespaces.ts'
import type { Place } from './place.ts'

const CGROUPS = '/sys/fs/cgroup'
/** Beyond what the processes have when they come into the group. */
const LIMIT_BYTES = 32 * 1024 * 1024
const HOG = `x = [bytearray(1 << 20) for _ in range(${LIMIT_BYTES >> 19})]`

/** Where groups with a limit of memory are made, and the name of the limit: version 1 or 2. */
export function memoryRoot(): readonly [string, string] | undefined {
  const first = join(CGROUPS, 'memory')
  if (existsSync(first)) return [first, 'memory.limit_in_bytes']
  const controllers = join(CGROUPS, 'cgroup.subtree_control')
  const isThere = existsSync(controllers) && /\bmemory\b/.test(readFileSync(controllers, 'utf8'))
  return isThere ? [CGROUPS, 'memory.max'] : undefined
}

/** For a fault's `skip`: why memory cannot be limited here, or false. */
export function withoutMemoryLimits(): string | false {
  return memoryRoot() === undefined && 'there are no control groups of memory'
}

/** Another process in the same group takes all memory that the group may have; the kernel ends the largest one, and that is the place's. */
export async function exhaustMemory(place: Place): Promise<void> {
  const [root, limit] = memoryRoot() ?? ['', '']
  const group = join(root, `tutti-faults-${place.process.pid}-${Date.now()}`)
  await mkdir(group)
  try {
    await writeFile(join(group, limit), String(LIMIT_BYTES))
    const members = join(group, 'cgroup.procs')
    for (const pid of [place.process.pid, ...(await place.instances())]) {
      // oxlint-disable-next-line no-await-in-loop -- the kernel takes one at a time
      await writeFile(members, String(pid))
    }
    const script = `echo $$ > ${members}; exec "$0" -c '${HOG}'`
    // It is killed itself in the end, unless it fits once the other one is gone.
    await command('sh', '-c', script, PYTHON ?? 'python3').catch(() => '')
    await place.process.exited
  } finally {
    await until('the group is empty', async () => {
      const left = readFileSync(join(group, 'cgroup.procs'), 'utf8')
      return left === ''
    })
    await rmdir(group)
  }
}
