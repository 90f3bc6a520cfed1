import { execFileSync, spawn } from 'node:child_process'
import {
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { request } from 'node:https'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { SetupFailure } from '../../scripts/setup/failure.mjs'
import { makeCertificates } from './certificates.mjs'
import { cgroupHierarchies } from './machine.mjs'
import {
  API_ADDRESS,
  connect,
  disconnect,
  guardRanges,
  HOST_ADDRESS,
  NODE_ADDRESS,
  POD_RANGE,
  SERVICE_RANGE,
} from './network.mjs'
import { firstChild, killProcess, livingProcess, saveProcess } from './process-file.mjs'

const HERE = dirname(fileURLToPath(import.meta.url))
const NODE_NAME = 'tutti-node'
const GROUP = 'tutti-node'
const NAMESPACES = ['--net', '--mount', '--uts', '--ipc', '--pid']
/** Containers watch files; the usual 128 of a user are too few for a node. */
const INOTIFY = '/proc/sys/fs/inotify/max_user_instances'
const INOTIFY_INSTANCES = 1024
/** What a device plugin would tell of a machine with GPUs: whole ones, parts of one (MIG), and one that is shared by time. */
const DEVICES = 'nvidia.com/gpu=2 nvidia.com/mig-1g.5gb=1 nvidia.com/gpu.shared=4'
const POLL_MS = 50
/** A start takes some 20 s; a machine that is busy with other things may take much longer. */
const LIMIT_MS = 180_000
const GROUP_LIMIT_MS = 10_000
const LOG_LINES = 20

/**
 * A Kubernetes of one node, in namespaces of its own: nothing of it is on the machine but one network link, cgroups and what is
 * in its folder, and it ends with its process 1. It reaches nothing but this machine.
 */
export class Node {
  #state

  /** @param {string} state - the folder of all that the node writes; on a disk, since images are unpacked there. */
  constructor(state) {
    this.#state = state
  }

  /** For kubectl, once the node is up. */
  get kubeconfig() {
    return this.#path('kubeconfig')
  }

  get isUp() {
    return this.#pid !== undefined && existsSync(this.#path('up'))
  }

  /** Where the logs of a start that failed are. */
  get failedLogs() {
    return `${this.#state}.failed`
  }

  /**
   * Starts the node, and waits until it is Ready, and all that it comes with is. One that is up already stays as it is.
   *
   * @param {{ kubernetes: string, programs: Record<string, string>, images: readonly string[], say: (line: string) => void }} o
   *   - folders with programs; further images that the node begins with.
   * @throws SetupFailure if it does not start: it is gone then, but for its logs.
   */
  async up(o) {
    if (this.isUp) return
    await this.down()
    guardRanges()
    mkdirSync(this.#state, { recursive: true, mode: 0o711 })
    try {
      await this.#start(o)
    } catch (error) {
      this.#keepLogs()
      await this.down()
      throw new SetupFailure(
        `The node did not start: ${error.message}\nIts logs are in ${this.failedLogs}.`,
        { cause: error },
      )
    }
  }

  /** Ends the node, every container of it too, and removes its folder. */
  async down() {
    await killProcess(this.#path('process.json'))
    disconnect()
    for (const group of this.#groups()) await removeGroup(group)
    // Whatever is mounted there was so in the node's own namespace.
    rmSync(this.#state, { recursive: true, force: true })
  }

  /** Runs a program inside the node; gives back what it writes. */
  run(program, ...args) {
    const pid = this.#pid
    if (pid === undefined) throw new SetupFailure('The node is not up.')
    const namespaces = ['-m', '-n', '-p', '-u', '-i', '-C']
    return execFileSync(
      'nsenter',
      ['-t', String(firstChild(pid)), ...namespaces, '--', program, ...args],
      { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] },
    )
  }

  /** Bytes that the processes of the node and of its containers hold, files that the kernel keeps for them not counted. */
  usedMemory() {
    const { version } = cgroupHierarchies()
    const [group] = this.#groups().filter((path) => version === 2 || /\/memory\//.test(path))
    const field = version === 2 ? 'anon' : 'total_rss'
    try {
      const stat = readFileSync(join(group, 'memory.stat'), 'utf8')
      return Number(new RegExp(`^${field} (\\d+)$`, 'm').exec(stat)?.[1] ?? 0)
    } catch {
      // There is no node.
      return 0
    }
  }

  get #pid() {
    return livingProcess(this.#path('process.json'))
  }

  #path(...names) {
    return join(this.#state, ...names)
  }

  #groups() {
    return cgroupHierarchies().folders.map((folder) => join(folder, GROUP))
  }

  async #start({ kubernetes, programs, images, say }) {
    const sinceMs = performance.now()
    const tell = (what) =>
      say(`${what} after ${((performance.now() - sinceMs) / 1000).toFixed(1)} s`)
    makeCertificates(this.#path('certificates'), {
      name: NODE_NAME,
      address: NODE_ADDRESS,
      names: [
        ...['', '.default', '.default.svc', '.default.svc.cluster.local'].map((rest) => {
          return `DNS:kubernetes${rest}`
        }),
        ...[API_ADDRESS, NODE_ADDRESS].map((address) => `IP:${address}`),
      ],
    })
    this.#makeGroups()
    if (Number(readFileSync(INOTIFY, 'utf8')) < INOTIFY_INSTANCES) {
      writeFileSync(INOTIFY, String(INOTIFY_INSTANCES))
    }
    this.#spawn({ kubernetes, programs, images })
    await this.#until('the namespaces are made', () => existsSync(this.#path('mounted')))
    connect(firstChild(this.#pid))
    this.#touch('connected')
    await this.#until('the API server is ready', () => this.#isApiReady())
    this.#touch('api-ready')
    copyFileSync(this.#path('certificates', 'admin.kubeconfig'), this.kubeconfig)
    tell('API server ready')
    const kubectl = (...args) => this.#kubectl(kubernetes, ...args)
    kubectl('apply', `--filename=${join(HERE, 'manifests')}`)
    kubectl('wait', '--for=create', `node/${NODE_NAME}`, '--timeout=60s')
    kubectl('wait', '--for=condition=Ready', `node/${NODE_NAME}`, '--timeout=120s')
    tell('node Ready')
    kubectl('rollout', 'status', '--namespace=kube-system', 'deployment/coredns', '--timeout=120s')
    tell('DNS ready')
    await this.#until('the images are loaded', () => existsSync(this.#path('images-loaded')))
    kubectl('rollout', 'status', '--namespace=ingress', 'deployment/traefik', '--timeout=120s')
    tell('ingress controller ready')
    this.#touch('up')
  }

  #makeGroups() {
    for (const group of this.#groups()) {
      mkdirSync(group, { recursive: true })
      // Of version 1; a group with neither takes no process.
      for (const file of ['cpuset.cpus', 'cpuset.mems']) {
        const inherited = join(dirname(group), file)
        if (!existsSync(inherited) || existsSync(join(dirname(group), 'cgroup.controllers')))
          continue
        writeFileSync(join(group, file), readFileSync(inherited))
      }
    }
  }

  #spawn({ kubernetes, programs, images }) {
    const log = openSync(this.#path('init.log'), 'w')
    const child = spawn(
      'unshare',
      [...NAMESPACES, '--fork', '--kill-child', '--mount-proc', join(HERE, 'node', 'init.sh')],
      {
        detached: true,
        stdio: ['ignore', log, log],
        env: {
          PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
          STATE: this.#state,
          CONFIG: join(HERE, 'node'),
          CGROUPS: this.#groups().join(' '),
          KUBE: kubernetes,
          NODE_PROGRAMS: programs.node,
          METRICS: programs['metrics-server'],
          NAME: NODE_NAME,
          ADDRESS: NODE_ADDRESS,
          HOST_ADDRESS,
          POD_RANGE,
          SERVICE_RANGE,
          DEVICES,
          FIRST_IMAGES: `${programs.node}/pause.tar ${programs.coredns}/coredns.tar`,
          MORE_IMAGES: [
            `${programs.traefik}/traefik.tar`,
            `${programs.node}/probe.tar`,
            ...images,
          ].join(' '),
        },
      },
    )
    closeSync(log)
    if (child.pid === undefined) throw new Error('unshare cannot be run')
    saveProcess(this.#path('process.json'), child.pid)
    child.unref()
  }

  /** @throws Error with what it last wrote if a program of the node has ended meanwhile. */
  async #until(what, look) {
    const giveUpAt = performance.now() + LIMIT_MS
    while (!(await look())) {
      this.#checkPrograms()
      if (performance.now() > giveUpAt) throw new Error(`waited in vain until ${what}`)
      await sleep(POLL_MS)
    }
  }

  #checkPrograms() {
    const ended = existsSync(this.#path('ended')) && readFileSync(this.#path('ended'), 'utf8')
    const name = ended ? ended.split('\n')[0] : this.#pid === undefined ? 'init' : undefined
    if (name === undefined) return
    const log = this.#path(`${name.startsWith('image ') ? 'images' : name}.log`)
    const lines = readFileSync(log, 'utf8').trimEnd().split('\n').slice(-LOG_LINES)
    throw new Error(`${name} has ended; its last lines:\n${lines.join('\n')}`)
  }

  #isApiReady() {
    const options = { ca: readFileSync(this.#path('certificates', 'ca.crt')), timeout: 2000 }
    return new Promise((resolve) => {
      const asked = request(`https://${NODE_ADDRESS}:6443/readyz`, options, (response) => {
        response.resume()
        resolve(response.statusCode === 200)
      })
      asked.on('timeout', () => asked.destroy())
      asked.on('error', () => resolve(false))
      asked.end()
    })
  }

  #kubectl(kubernetes, ...args) {
    this.#checkPrograms()
    const all = [`--kubeconfig=${this.kubeconfig}`, ...args]
    execFileSync(join(kubernetes, 'kubectl'), all, { stdio: ['ignore', 'ignore', 'pipe'] })
  }

  #touch(name) {
    writeFileSync(this.#path(name), '')
  }

  #keepLogs() {
    rmSync(this.failedLogs, { recursive: true, force: true })
    mkdirSync(this.failedLogs)
    for (const name of readdirSync(this.#state).filter((file) => file.endsWith('.log'))) {
      copyFileSync(this.#path(name), join(this.failedLogs, name))
    }
  }
}

/** A group goes once it has no process left: the kernel takes a moment for those that were killed. */
async function removeGroup(group) {
  const giveUpAt = performance.now() + GROUP_LIMIT_MS
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
