import { execFile, spawn } from 'node:child_process'
import {
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { request } from 'node:https'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { runQuietly } from '../../scripts/setup/child.mjs'
import { SetupFailure } from '../../scripts/setup/failure.mjs'
import { makeCertificates } from './certificates.mjs'
import { groupsOfNode, makeGroups, removeGroups } from './cgroups.mjs'
import {
  API_ADDRESS,
  connect,
  disconnect,
  guardRanges,
  isLinked,
  NODE_ADDRESS,
  SERVICE_RANGE,
} from './network.mjs'
import { firstChild, killProcess, livingProcess, saveProcess } from './process-file.mjs'
import { claimFolder, emptyFolder, isFolderOfNode } from './state-folder.mjs'

const HERE = import.meta.dirname
const NODE_NAME = 'tutti-node'
const NAMESPACES = ['--net', '--mount', '--uts', '--ipc', '--pid']
/** Containers watch files; the usual 128 of a user are too few for a node. */
const INOTIFY = '/proc/sys/fs/inotify/max_user_instances'
const INOTIFY_INSTANCES = 1024
/**
 * Devices that a device plugin would tell of on a machine with GPUs: whole ones, parts of one (MIG), and one that is shared by time;
 * and those of another vendor, for which no driver of CUDA is asked.
 */
const DEVICES =
  'nvidia.com/gpu=2 nvidia.com/mig-1g.5gb=1 nvidia.com/gpu.shared=4 gpu.example.com/card=2'
const POLL_MS = 50
/** A start takes some 20 s; a machine that is busy with other things may take much longer. */
const LIMIT_MS = 180_000
const LOG_LINES = 20
/** The process that will end the node, if it is not to stay. */
const RUN = 'run.json'

/**
 * A Kubernetes of one node, in namespaces of its own: nothing of it is on the machine but one network link, cgroups and what is
 * in its folder, and it ends with its process 1. It reaches nothing but this machine.
 */
export class Node {
  #state

  /** @param {string} state - the folder of all that the node writes; on a disk, since images are unpacked there. */
  constructor(state) {
    this.#state = resolve(state)
  }

  /** For kubectl, once the node is up. */
  get kubeconfig() {
    return this.#path('kubeconfig')
  }

  get isUp() {
    return this.whyNotUp() === undefined
  }

  /** Why it is not up, as part of a sentence, or undefined if it is. */
  whyNotUp() {
    if (this.#pid === undefined) return 'no node has been started, or it has ended'
    if (!existsSync(this.#path('up'))) return 'the node has not started to its end'
    const ended = this.#endedProgram
    if (ended !== undefined) return `of the node's programs ${ended} has ended`
    const run = this.#path(RUN)
    if (existsSync(run) && livingProcess(run) === undefined) {
      return 'the run that has started the node was killed'
    }
    return undefined
  }

  /** Where the logs of a start that failed are. */
  get failedLogs() {
    return `${this.#state}.failed`
  }

  /**
   * Starts the node, and waits until it is Ready, and all that it comes with is. One that is up already stays as it is.
   *
   * @param {{ kubernetes: string, programs: Record<string, string>, images: readonly string[], run?: number,
   *   signal?: AbortSignal, say: (line: string) => void }} o - folders with programs; further images that the node begins with;
   *   the process that will end the node: if it is killed before it could, the node no longer counts as up.
   * @throws SetupFailure if it does not start: it is gone then, but for its logs.
   */
  async up(o) {
    if (this.isUp) return
    await this.down()
    if (isLinked()) {
      throw new SetupFailure(
        'Another node is up on this machine, and only one can be: its folder is another than ' +
          `${this.#state}, so end it with TUTTI_CLUSTER_STATE as it was when that was started.`,
      )
    }
    guardRanges()
    claimFolder(this.#state)
    try {
      await this.#start(o)
    } catch (error) {
      try {
        this.#keepLogs()
      } finally {
        await this.down()
      }
      // A signal to the whole group ends what is being run, too, and that is what is told first.
      const why = o.signal?.aborted ? o.signal.reason : error
      throw new SetupFailure(
        `The node did not start: ${why.message}\nIts logs are in ${this.failedLogs}.`,
        { cause: error },
      )
    }
  }

  /**
   * Ends the node, every container of it too, and empties its folder. Where there is none, nothing is touched: neither a folder of
   * somebody else's nor another node.
   */
  async down() {
    if (!isFolderOfNode(this.#state)) return
    await killProcess(this.#path('process.json'))
    disconnect()
    await removeGroups()
    // Whatever is mounted there was so in the node's own namespace.
    emptyFolder(this.#state)
  }

  /** Runs a program inside the node; gives back what it writes. */
  async run(program, ...args) {
    const pid = this.#pid
    if (pid === undefined) throw new SetupFailure('The node is not up.')
    const namespaces = ['-m', '-n', '-p', '-u', '-i', '-C']
    const inside = ['-t', String(firstChild(pid)), ...namespaces, '--', program]
    const { stdout } = await promisify(execFile)('nsenter', [...inside, ...args])
    return stdout
  }

  get #pid() {
    return livingProcess(this.#path('process.json'))
  }

  /** The first program of the node that has ended, which none should. */
  get #endedProgram() {
    const path = this.#path('ended')
    const [name] = existsSync(path) ? readFileSync(path, 'utf8').split('\n') : []
    return name || undefined
  }

  #path(...names) {
    return join(this.#state, ...names)
  }

  async #start({ kubernetes, programs, images, run, signal, say }) {
    if (run !== undefined) saveProcess(this.#path(RUN), run)
    const until = (what, look) => this.#until(what, look, signal)
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
    makeGroups()
    if (Number(readFileSync(INOTIFY, 'utf8')) < INOTIFY_INSTANCES) {
      writeFileSync(INOTIFY, String(INOTIFY_INSTANCES))
    }
    this.#spawn({ kubernetes, programs, images })
    await until('the namespaces are made', () => existsSync(this.#path('mounted')))
    connect(firstChild(this.#pid))
    this.#touch('connected')
    await until('the API server is ready', () => this.#isApiReady())
    this.#touch('api-ready')
    copyFileSync(this.#path('certificates', 'admin.kubeconfig'), this.kubeconfig)
    tell('API server ready')
    const kubectl = (...args) => this.#kubectl(join(kubernetes, 'kubectl'), args, signal)
    const gatewayApi = `--filename=${programs['gateway-api']}`
    await kubectl('apply', '--server-side', gatewayApi)
    await kubectl('wait', '--for=condition=Established', '--timeout=60s', gatewayApi)
    await kubectl('apply', `--filename=${join(HERE, 'manifests')}`)
    await kubectl('wait', '--for=create', `node/${NODE_NAME}`, '--timeout=60s')
    await kubectl('wait', '--for=condition=Ready', `node/${NODE_NAME}`, '--timeout=120s')
    tell('node Ready')
    await kubectl(
      'rollout',
      'status',
      '--namespace=kube-system',
      'deployment/coredns',
      '--timeout=120s',
    )
    tell('DNS ready')
    await until('the images are loaded', () => existsSync(this.#path('images-loaded')))
    await kubectl(
      'rollout',
      'status',
      '--namespace=ingress',
      'deployment/traefik',
      '--timeout=120s',
    )
    tell('ingress controller ready')
    this.#touch('up')
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
          CGROUPS: groupsOfNode().join(' '),
          KUBE: kubernetes,
          NODE_PROGRAMS: programs.node,
          NAME: NODE_NAME,
          ADDRESS: NODE_ADDRESS,
          SERVICE_RANGE,
          DEVICES,
          FIRST_IMAGES: `${programs.node}/pause.tar ${programs.coredns}/coredns.tar`,
          MORE_IMAGES: [
            `${programs.traefik}/traefik.tar`,
            `${programs.node}/probe.tar`,
            `${programs.versitygw}/versitygw.tar`,
            ...images,
          ].join(' '),
        },
      },
    )
    closeSync(log)
    // Without it, it would be thrown beside the error below.
    child.once('error', () => {})
    if (child.pid === undefined) throw new Error('unshare cannot be run')
    saveProcess(this.#path('process.json'), child.pid)
    child.unref()
  }

  /** @throws Error with what it last wrote if a program of the node has ended meanwhile. */
  async #until(what, look, signal) {
    const giveUpAt = performance.now() + LIMIT_MS
    while (!(await look())) {
      signal?.throwIfAborted()
      this.#checkPrograms()
      if (performance.now() > giveUpAt) throw new Error(`waited in vain until ${what}`)
      await sleep(POLL_MS)
    }
  }

  #checkPrograms() {
    const name = this.#endedProgram ?? (this.#pid === undefined ? 'init' : undefined)
    if (name === undefined) return
    const log = this.#path(`${name.startsWith('image ') ? 'images' : name}.log`)
    const lines = readFileSync(log, 'utf8').trimEnd().split('\n').slice(-LOG_LINES)
    throw new Error(`${name} has ended; its last lines:\n${lines.join('\n')}`)
  }

  #isApiReady() {
    const options = { ca: readFileSync(this.#path('certificates', 'ca.crt')), timeout: 2000 }
    return new Promise((settle) => {
      const asked = request(`https://${NODE_ADDRESS}:6443/readyz`, options, (response) => {
        response.resume()
        settle(response.statusCode === 200)
      })
      asked.on('timeout', () => asked.destroy())
      asked.on('error', () => settle(false))
      asked.end()
    })
  }

  async #kubectl(program, args, signal) {
    signal?.throwIfAborted()
    this.#checkPrograms()
    const all = [`--kubeconfig=${this.kubeconfig}`, ...args]
    try {
      await runQuietly(`kubectl ${args.join(' ')}`, program, all)
    } catch (error) {
      signal?.throwIfAborted()
      // It waits in vain for a program that has ended.
      this.#checkPrograms()
      throw error
    }
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
