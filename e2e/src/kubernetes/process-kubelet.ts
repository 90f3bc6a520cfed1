import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ApiServer, PlainClient, PlainObject } from '@tutti/kube/testing'
import { createNode, markNodeLost, renewNode } from './kubelet-nodes.ts'
import { type AddressBlock, takeAddresses } from './pod-addresses.ts'
import type { Program } from './pod-commands.ts'
import { PodRun } from './pod-run.ts'
import { toPodStatus } from './pod-status.ts'

/** What stands for a container image. */
export interface ProcessImage {
  readonly programs: Readonly<Record<string, Program>>
  /** The whole environment that the image gives. */
  readonly env: Readonly<Record<string, string>>
}

export interface ProcessKubeletOptions {
  readonly api: ApiServer
  /** What an image's name stands for; undefined if it cannot be pulled. */
  readonly image: (name: string) => ProcessImage | undefined
  /** Default: one, `process-0`. */
  readonly nodes?: readonly string[]
  /** Of each node. */
  readonly resources?: Readonly<Record<string, string>>
  /** Between the end of a container and its next start; default 500 to 8000. */
  readonly backoffMs?: readonly [first: number, most: number]
}

/** Nodes on which every container is a process of this machine. */
export interface ProcessKubelet {
  /** The process of a container that runs, `main` if not said. */
  pidOf(pod: PlainObject, container?: string): number | undefined
  /** What the containers of all pods of these names wrote, those that are gone too: the beginning of a name will do. */
  linesOf(namespace: string, name: string): readonly string[]
  /** Kills what runs on a node, about which nobody hears from then on; Kubernetes has noticed when it resolves. */
  loseNode(name: string): Promise<void>
  /** Kills everything. Fine to call again. */
  close(): Promise<void>
}

const LOOK_MS = 200
const REFRESH_MS = 2000
const RENEW_MS = 10_000
const RESOURCES = {
  cpu: '64',
  memory: '256Gi',
  pods: '110',
  'nvidia.com/gpu': '8',
  'nvidia.com/mig-1g.5gb': '1',
}

/**
 * Runs the pods of its nodes: init containers in order, then all containers, as processes that listen on a loopback address of
 * the pod's own. Volumes are folders, and the paths where they would be mounted are replaced in arguments and variables. Probes,
 * restarts, preStop, grace and conditions are as a kubelet's; limits, users and other isolation are not there.
 */
export async function startProcessKubelet(o: ProcessKubeletOptions): Promise<ProcessKubelet> {
  const block = await takeAddresses()
  const folder = await mkdtemp(join(tmpdir(), 'tutti-kubelet-'))
  const kubelet = new Kubelet(o, block, folder)
  try {
    await kubelet.start()
    return kubelet
  } catch (error) {
    await kubelet.close()
    throw error
  }
}

interface KeptRun {
  readonly run: PodRun
  /** `namespace/name`. */
  readonly key: string
  readonly node: string
  /** What was last written. */
  status: string
  refreshedAt: number
  ending?: Promise<void>
}

class Kubelet implements ProcessKubelet {
  readonly #o: ProcessKubeletOptions
  readonly #plain: PlainClient
  /** Without those that are lost. */
  #nodes: readonly string[]
  readonly #block: AddressBlock
  readonly #folder: string
  readonly #runs = new Map<string, KeptRun>()
  readonly #gone: { readonly key: string; readonly lines: readonly string[] }[] = []
  readonly #closing = new AbortController()
  #loops: Promise<unknown> = Promise.resolve()

  constructor(o: ProcessKubeletOptions, block: AddressBlock, folder: string) {
    this.#o = o
    this.#plain = o.api.plain
    this.#nodes = o.nodes ?? ['process-0']
    this.#block = block
    this.#folder = folder
  }

  async start(): Promise<void> {
    const { resources = RESOURCES } = this.#o
    for (const name of this.#nodes) await createNode(this.#plain, name, resources)
    this.#loops = Promise.all([
      this.#repeat(LOOK_MS, () => this.#look()),
      this.#repeat(RENEW_MS, async () => {
        for (const name of this.#nodes) await renewNode(this.#plain, name)
      }),
    ])
  }

  pidOf({ metadata }: PlainObject, container = 'main'): number | undefined {
    const kept = this.#runs.get(metadata.uid)
    return kept?.run.containers.find(({ spec }) => spec['name'] === container)?.pid
  }

  linesOf(namespace: string, name: string): readonly string[] {
    const live = [...this.#runs.values()].map(({ key, run }) => ({ key, lines: linesOf(run) }))
    return [...this.#gone, ...live]
      .filter(({ key }) => key.startsWith(`${namespace}/${name}`))
      .flatMap(({ lines }) => lines)
  }

  async loseNode(name: string): Promise<void> {
    this.#nodes = this.#nodes.filter((node) => node !== name)
    const runs = [...this.#runs].filter(([, { node }]) => node === name)
    await Promise.all(runs.map(([uid, kept]) => this.#end(uid, kept, 0)))
    await markNodeLost(this.#plain, name)
  }

  async close(): Promise<void> {
    this.#closing.abort()
    await this.#loops
    await Promise.all([...this.#runs.values()].map(({ run }) => run.end(0)))
    this.#runs.clear()
    this.#block.release()
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 5 })
  }

  /** An API server that is away is looked for again: what runs goes on. */
  async #repeat(everyMs: number, work: () => Promise<void>): Promise<void> {
    const { signal } = this.#closing
    while (!signal.aborted) {
      await work().catch(() => {})
      await sleep(everyMs, undefined, { signal }).catch(() => {})
    }
  }

  async #look(): Promise<void> {
    const pods = await this.#plain.list('/api/v1/pods')
    const ours = pods.filter((pod) => this.#isOurs(pod))
    await Promise.all(ours.map((pod) => this.#sync(pod)))
    const uids = new Set(ours.map(({ metadata }) => metadata.uid))
    for (const [uid, kept] of this.#runs) {
      // Somebody deleted it without waiting.
      if (!uids.has(uid)) void this.#end(uid, kept, 0)
    }
  }

  #isOurs({ spec }: PlainObject): boolean {
    return this.#nodes.includes(spec.nodeName)
  }

  async #sync(pod: PlainObject): Promise<void> {
    if (!this.#isOurs(pod)) return
    const { uid, deletionTimestamp, deletionGracePeriodSeconds = 0 } = pod['metadata']
    const kept = this.#runs.get(uid) ?? (await this.#begin(pod))
    if (kept === undefined) return
    if (deletionTimestamp !== undefined) {
      kept.ending ??= this.#endDeleted(pod, kept, deletionGracePeriodSeconds * 1000)
    } else if (performance.now() > kept.refreshedAt + REFRESH_MS) {
      kept.refreshedAt = performance.now()
      // An object that is away for now leaves its files.
      await kept.run.refresh().catch(() => {})
    }
    await this.#writeStatus(pod, kept)
  }

  /** @returns undefined for a pod that cannot begin, or need not. */
  async #begin(pod: PlainObject): Promise<KeptRun | undefined> {
    const { uid, namespace, name, deletionTimestamp } = pod['metadata']
    if (deletionTimestamp !== undefined) {
      await this.#remove(pod)
      return undefined
    }
    const { containers, initContainers = [] } = pod['spec']
    const missing = [...initContainers, ...containers].find(
      ({ image }) => this.#o.image(image) === undefined,
    )
    if (missing !== undefined) {
      await this.#refuse(pod, 'ImagePullBackOff', `there is no image ${missing.image}`)
      return undefined
    }
    try {
      const kept: KeptRun = {
        run: this.#run(pod),
        key: `${namespace}/${name}`,
        node: pod['spec'].nodeName,
        status: '',
        refreshedAt: performance.now(),
      }
      this.#runs.set(uid, kept)
      return kept
    } catch (error) {
      await this.#refuse(pod, 'CreateContainerConfigError', String(error))
      return undefined
    }
  }

  #run(pod: PlainObject): PodRun {
    const { hostname, port } = this.#o.api.url
    const server = { KUBERNETES_SERVICE_HOST: hostname, KUBERNETES_SERVICE_PORT: port }
    const used = new Set([...this.#runs.values()].map(({ run }) => run.podIp))
    return new PodRun({
      pod,
      plain: this.#plain,
      podIp: this.#block.next(used),
      folder: join(this.#folder, pod['metadata'].uid),
      programs: (image) => this.#o.image(image)?.programs ?? {},
      env: (image) => ({ ...this.#o.image(image)?.env, ...server }),
      backoffMs: this.#o.backoffMs ?? [500, 8000],
    })
  }

  async #refuse(pod: PlainObject, reason: string, message: string): Promise<void> {
    if (pod['status']?.containerStatuses !== undefined) return
    const state = { waiting: { reason, message } }
    const containerStatuses = pod['spec'].containers.map(({ name, image }: PlainObject) => {
      return { name, image, imageID: '', ready: false, restartCount: 0, state }
    })
    await this.#patchStatus(pod, { phase: 'Pending', containerStatuses })
  }

  async #endDeleted(pod: PlainObject, kept: KeptRun, graceMs: number): Promise<void> {
    await kept.run.end(graceMs)
    await this.#writeStatus(pod, kept).catch(() => {})
    // Until it is gone the API server may be away: the next look finds no run of it, and removes it.
    this.#forget(pod['metadata'].uid, kept)
    await this.#remove(pod).catch(() => {})
  }

  async #end(uid: string, kept: KeptRun, graceMs: number): Promise<void> {
    kept.ending ??= kept.run.end(graceMs)
    await kept.ending
    this.#forget(uid, kept)
  }

  #forget(uid: string, { key, run }: KeptRun): void {
    if (this.#runs.delete(uid)) this.#gone.push({ key, lines: linesOf(run) })
  }

  async #remove({ metadata }: PlainObject): Promise<void> {
    const { namespace, name, uid } = metadata
    const options = { gracePeriodSeconds: 0, preconditions: { uid } }
    await this.#plain.delete(`/api/v1/namespaces/${namespace}/pods/${name}`, options)
  }

  async #writeStatus(pod: PlainObject, kept: KeptRun): Promise<void> {
    const status = toPodStatus(pod, kept.run)
    const text = JSON.stringify(status)
    if (text === kept.status || !this.#isOurs(pod)) return
    await this.#patchStatus(pod, status)
    kept.status = text
  }

  async #patchStatus({ metadata }: PlainObject, status: PlainObject): Promise<void> {
    const { namespace, name, uid } = metadata
    const path = `/api/v1/namespaces/${namespace}/pods/${name}/status`
    const body = { metadata: { uid }, status }
    const contentType = 'application/strategic-merge-patch+json'
    const answer = await this.#plain.send('PATCH', path, { body, contentType })
    if (answer.status >= 300) throw new Error(JSON.stringify(answer.body))
  }
}

function linesOf(run: PodRun): readonly string[] {
  return run.all.flatMap(({ lines }) => lines)
}
