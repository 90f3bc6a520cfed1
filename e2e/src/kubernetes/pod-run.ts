import { setTimeout as sleep } from 'node:timers/promises'
import type { PlainClient, PlainObject } from '@tutti/kube/testing'
import { type Program, toPodCommand } from './pod-commands.ts'
import { now, PodContainer } from './pod-container.ts'
import { PodVolumes } from './pod-volumes.ts'

export interface PodRunOptions {
  readonly pod: PlainObject
  readonly plain: PlainClient
  readonly podIp: string
  /** The pod's own; it is removed with the pod. */
  readonly folder: string
  readonly programs: (image: string) => Readonly<Record<string, Program>>
  readonly env: (image: string) => Readonly<Record<string, string>>
  readonly backoffMs: readonly [first: number, most: number]
}

const MOUNT_RETRY_MS = 500
const DEFAULT_GRACE_S = 30

/** A pod that is bound to our node, from its volumes to its end. */
export class PodRun {
  readonly podIp: string
  readonly startTime = now()
  readonly initContainers: readonly PodContainer[]
  readonly containers: readonly PodContainer[]
  phase: 'Pending' | 'Running' | 'Succeeded' | 'Failed' = 'Pending'
  isInitialized = false
  readonly #o: PodRunOptions
  readonly #volumes: PodVolumes
  readonly #over: Promise<void>
  readonly #ending = new AbortController()

  constructor(o: PodRunOptions) {
    this.#o = o
    this.podIp = o.podIp
    this.#volumes = new PodVolumes(o.pod, o.plain, o.folder)
    const { spec } = o.pod
    this.initContainers = (spec.initContainers ?? []).map((one: PlainObject) => {
      if (one['restartPolicy'] !== undefined) throw new Error('this kubelet knows no sidecars')
      return this.#toContainer(one, true)
    })
    this.containers = spec.containers.map((one: PlainObject) => this.#toContainer(one, false))
    this.#over = this.#live()
  }

  get all(): readonly PodContainer[] {
    return [...this.initContainers, ...this.containers]
  }

  /** Brings Secrets, ConfigMaps and tokens up to date. */
  async refresh(): Promise<void> {
    if (this.phase === 'Running') await this.#volumes.sync()
  }

  /** Ends all containers, each with the whole grace. */
  async end(graceMs: number): Promise<void> {
    this.#ending.abort()
    await Promise.all(this.all.map((container) => container.end(graceMs)))
    await this.#over
    await this.#volumes.remove()
  }

  async #live(): Promise<void> {
    if (!(await this.#mount())) return
    for (const container of this.initContainers) {
      const { exitCode } = await container.run()
      if (exitCode === 0) continue
      this.phase = 'Failed'
      return
    }
    if (this.#ending.signal.aborted) return
    this.isInitialized = true
    this.phase = 'Running'
    const ends = await Promise.all(this.containers.map((container) => container.run()))
    this.phase = ends.every(({ exitCode }) => exitCode === 0) ? 'Succeeded' : 'Failed'
  }

  /** What a volume wants may come later. @returns false if the pod is ended before. */
  async #mount(): Promise<boolean> {
    while (!this.#ending.signal.aborted) {
      try {
        await this.#volumes.sync()
        return true
      } catch (error) {
        for (const { state } of this.all) {
          state['waiting'] = { reason: 'ContainerCreating', message: String(error) }
        }
      }
      await sleep(MOUNT_RETRY_MS, undefined, { signal: this.#ending.signal }).catch(() => {})
    }
    return false
  }

  #toContainer(spec: PlainObject, isInit: boolean): PodContainer {
    const { pod, podIp, programs, env, backoffMs } = this.#o
    const { restartPolicy, terminationGracePeriodSeconds = DEFAULT_GRACE_S } = pod['spec']
    return new PodContainer({
      spec,
      isInit,
      podIp,
      restartPolicy,
      backoffMs,
      graceMs: terminationGracePeriodSeconds * 1000,
      command: () =>
        toPodCommand({
          pod,
          container: spec,
          podIp,
          programs: programs(spec['image']),
          mappings: this.#volumes.mappingsOf(spec),
          env: env(spec['image']),
        }),
    })
  }
}
