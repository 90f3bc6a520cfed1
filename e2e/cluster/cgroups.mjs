import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  statfsSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

const CGROUPS = '/sys/fs/cgroup'
const CGROUP2_MAGIC = 0x63677270
const CONTROLLERS = ['cpu', 'memory', 'pids']
/** The node's own, in each hierarchy. */
const GROUP = 'tutti-node'
const POLL_MS = 50
const LIMIT_MS = 10_000

/** Why a node cannot be in groups of its own here, as part of a sentence, or undefined if it can. */
export function whyNoCgroups() {
  if (!existsSync(CGROUPS)) return `there are no cgroups at ${CGROUPS}`
  const { version, folders } = hierarchies()
  const found =
    version === 2
      ? readFileSync(join(CGROUPS, 'cgroup.controllers'), 'utf8').trim().split(' ')
      : folders.flatMap((folder) => folder.slice(CGROUPS.length + 1).split(','))
  const lacking = CONTROLLERS.filter((controller) => !found.includes(controller))
  return lacking.length > 0 ? `there is no cgroup controller ${lacking.join(', ')}` : undefined
}

/** The folders of the node's groups, whether they are there or not. */
export function groupsOfNode() {
  return hierarchies().folders.map((folder) => join(folder, GROUP))
}

export function makeGroups() {
  for (const group of groupsOfNode()) {
    mkdirSync(group, { recursive: true })
    // Groups of version 1 have these files; a group in which neither is set takes no process.
    for (const file of ['cpuset.cpus', 'cpuset.mems']) {
      const inherited = join(dirname(group), file)
      if (!existsSync(inherited) || existsSync(join(dirname(group), 'cgroup.controllers'))) continue
      writeFileSync(join(group, file), readFileSync(inherited))
    }
  }
}

/** Removes what is left of them once their processes have been killed. */
export async function removeGroups() {
  for (const group of groupsOfNode()) await removeGroup(group)
}

/** Those of the machine: of version 1 one for each set of controllers, of version 2 one for all. */
function hierarchies() {
  if (statfsSync(CGROUPS).type === CGROUP2_MAGIC) return { version: 2, folders: [CGROUPS] }
  const folders = readdirSync(CGROUPS, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => join(CGROUPS, name))
  return {
    version: 1,
    folders: folders.filter((folder) => existsSync(join(folder, 'cgroup.procs'))),
  }
}

/** A group goes once it has no process left: the kernel takes a moment for those that were killed. */
async function removeGroup(group) {
  const giveUpAt = performance.now() + LIMIT_MS
  while (existsSync(group)) {
    try {
      for (const folder of foldersWithin(group)) rmdirSync(folder)
    } catch (error) {
      if (error.code !== 'EBUSY' && error.code !== 'ENOENT') throw error
      if (performance.now() > giveUpAt) throw error
      await sleep(POLL_MS)
    }
  }
}

/** Deepest first. */
function foldersWithin(folder) {
  const inner = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory())
  return [...inner.flatMap(({ name }) => foldersWithin(join(folder, name))), folder]
}
