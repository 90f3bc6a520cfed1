import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { PlainObject } from '@tutti/kube/testing'

const CGROUPS = '/sys/fs/cgroup'

/** Ends all processes of a pod's container by SIGKILL, its process 1 too. The containers of the own node are this machine's processes. */
export async function killContainer(pod: PlainObject, container: string): Promise<void> {
  const statuses: readonly PlainObject[] = pod['status'].containerStatuses ?? []
  const found = statuses.find(({ name }) => name === container)
  const [, id] = /^containerd:\/\/([0-9a-f]+)$/.exec(found?.['containerID'] ?? '') ?? []
  if (id === undefined) {
    throw new Error(`pod ${pod['metadata'].name} has no running container ${container}`)
  }
  const pids = new Set((await Promise.all((await groupsOf(id)).map(pidsOf))).flat())
  if (pids.size === 0) throw new Error(`container ${id} has no process`)
  for (const pid of pids) kill(pid)
}

/** With cgroups of version 1 one for each set of controllers. */
async function groupsOf(id: string): Promise<readonly string[]> {
  const args = [CGROUPS, '-type', 'd', '-name', `*${id}*`]
  const { stdout } = await promisify(execFile)('find', args)
  return stdout.split('\n').filter((path) => path !== '')
}

async function pidsOf(group: string): Promise<readonly number[]> {
  const text = await readFile(join(group, 'cgroup.procs'), 'utf8')
  return text.split('\n').filter(Boolean).map(Number)
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended with its process 1.
  }
}
