import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { PlainObject } from '@tutti/kube/testing'
import { clusterClient } from './kubectl.ts'

const CGROUPS = '/sys/fs/cgroup'

/** Ends all processes of a pod's container by SIGKILL, its process 1 too, and waits until it has started again and is ready. */
export async function killAndRestart(pod: PlainObject, container = 'main'): Promise<void> {
  for (const pid of await pidsOf(pod, container)) kill(pid)
  const { namespace, name } = pod['metadata']
  await clusterClient().until(`/api/v1/namespaces/${namespace}/pods/${name}`, (now) => {
    const [before, after] = [statusOf(pod, container), statusOf(now, container)]
    return after?.['ready'] === true && after['restartCount'] > before?.['restartCount']
  })
}

function statusOf(pod: PlainObject | undefined, container: string): PlainObject | undefined {
  const statuses: readonly PlainObject[] = pod?.['status'].containerStatuses ?? []
  return statuses.find(({ name }) => name === container)
}

/** Processes of a pod's container by their numbers on this machine, where those of the own node run. */
export async function pidsOf(pod: PlainObject, container: string): Promise<readonly number[]> {
  const { containerID = '' } = statusOf(pod, container) ?? {}
  const [, id] = /^containerd:\/\/([0-9a-f]+)$/.exec(containerID) ?? []
  if (id === undefined) {
    throw new Error(`pod ${pod['metadata'].name} has no running container ${container}`)
  }
  const pids = new Set((await Promise.all((await groupsOf(id)).map(pidsInGroup))).flat())
  if (pids.size === 0) throw new Error(`container ${id} has no process`)
  return [...pids]
}

/** With cgroups of version 1 one for each set of controllers. */
async function groupsOf(id: string): Promise<readonly string[]> {
  const args = [CGROUPS, '-type', 'd', '-name', `*${id}*`]
  const { stdout } = await promisify(execFile)('find', args)
  return stdout.split('\n').filter((path) => path !== '')
}

async function pidsInGroup(group: string): Promise<readonly number[]> {
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
