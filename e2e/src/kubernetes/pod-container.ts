import { setTimeout as sleep } from 'node:timers/promises'
import { type ProcessExit, type StartedProcess, startProcess } from '@tutti/chassis/testing'
import type { PlainObject } from '@tutti/kube/testing'
import type { PodCommand } from './pod-commands.ts'
import { type PodProbe, toPodProbe, watchProbe } from './pod-probe.ts'

/** A container ended so. */
export interface Terminated {
  readonly exitCode: number
  readonly reason: string
  readonly message?: string
  readonly startedAt: string
  readonly finishedAt: string
}

export interface PodContainerOptions {
  readonly spec: PlainObject
  readonly isInit: boolean
  readonly podIp: string
  /** Always, OnFailure or Never. */
  readonly restartPolicy: string
  readonly command: () => PodCommand
  /** For its end when a probe wants it. */
  readonly graceMs: number
  /** Between an end and the next start, at first and at most; it doubles. */
  readonly backoffMs: readonly [first: number, most: number]
}

/** For messages of containers whose own message is their log. */
const MESSAGE_BYTES = 2048
/** What Kubernetes takes for a process that could not be started. */
const CANNOT_RUN = 128

/** One container of a pod: a process that is started again when it ends, and what its probes say. */
export class PodContainer {
  readonly spec: PlainObject
  /** As in a ContainerStatus: `waiting`, `running` or `terminated`. */
  state: PlainObject = { waiting: { reason: 'PodInitializing' } }
  lastState: PlainObject = {}
  isStarted = false
  isReady = false
  restartCount = 0
  readonly #o: PodContainerOptions
  #lines: readonly string[] = []
  readonly #ending = new AbortController()
  readonly #probes: Readonly<Record<'startup' | 'liveness' | 'readiness', PodProbe | undefined>>
  #process: StartedProcess | undefined

  constructor(o: PodContainerOptions) {
    this.spec = o.spec
    this.#o = o
    const probe = (kind: string): PodProbe | undefined =>
      toPodProbe(o.spec[`${kind}Probe`], o.spec, o.podIp)
    this.#probes = {
      startup: probe('startup'),
      liveness: probe('liveness'),
      readiness: probe('readiness'),
    }
  }

  get pid(): number | undefined {
    return this.#process?.pid
  }

  /** All that it wrote, every process of it. */
  get lines(): readonly string[] {
    return this.#lines.concat(this.#process?.lines ?? [])
  }

  /** Runs until it has ended for good. */
  async run(): Promise<Terminated> {
    const [first, most] = this.#o.backoffMs
    for (let backoffMs = first; ; backoffMs = Math.min(backoffMs * 2, most)) {
      const terminated = await this.#runOnce()
      this.isStarted = false
      this.isReady = false
      this.state = { terminated }
      if (!this.#isRestarted(terminated)) return terminated
      const message = `back-off ${backoffMs}ms restarting failed container=${this.spec['name']}`
      this.lastState = { terminated }
      this.state = { waiting: { reason: 'CrashLoopBackOff', message } }
      const isOver = await sleep(backoffMs, false, { signal: this.#ending.signal }).catch(
        () => true,
      )
      if (isOver) {
        this.state = { terminated }
        return terminated
      }
      this.restartCount += 1
    }
  }

  /** Ends it as Kubernetes does: its preStop, SIGTERM, and SIGKILL when the time is over. */
  async end(graceMs: number): Promise<void> {
    this.#ending.abort()
    await this.#stop(graceMs)
  }

  async #stop(graceMs: number): Promise<void> {
    const { preStop } = this.spec['lifecycle'] ?? {}
    if (preStop !== undefined && preStop.sleep === undefined) {
      throw new Error(`container ${this.spec['name']}: want a preStop that sleeps`)
    }
    const running = this.#process
    if (running === undefined) return
    const preStopMs = Math.min((preStop?.sleep.seconds ?? 0) * 1000, graceMs)
    await Promise.race([sleep(preStopMs, undefined, { ref: false }), running.exited])
    await running.stop('SIGTERM', Math.max(graceMs - preStopMs, 0))
  }

  #isRestarted({ exitCode }: Terminated): boolean {
    const { restartPolicy, isInit } = this.#o
    if (this.#ending.signal.aborted || restartPolicy === 'Never') return false
    return exitCode !== 0 || (restartPolicy === 'Always' && !isInit)
  }

  async #runOnce(): Promise<Terminated> {
    const startedAt = now()
    try {
      const { command, env } = this.#o.command()
      const [program = '', ...args] = command
      const started = await startProcess(program, args, { env })
      this.#process = started
      this.state = { running: { startedAt } }
      const probing = new AbortController()
      void this.#probe(probing.signal)
      if (this.#ending.signal.aborted) started.kill('SIGTERM')
      const exit = await started.exited
      probing.abort()
      this.#process = undefined
      this.#lines = this.#lines.concat(started.lines)
      return toTerminated(this.spec, exit, started.lines, startedAt)
    } catch (error) {
      const message = String(error)
      this.#lines = [...this.#lines, message]
      const reason = 'ContainerCannotRun'
      return { exitCode: CANNOT_RUN, reason, message, startedAt, finishedAt: now() }
    }
  }

  async #probe(signal: AbortSignal): Promise<void> {
    const { startup, liveness, readiness } = this.#probes
    // The others begin when it has started; a container that ends is not asked whether it lives.
    const untilEnd = AbortSignal.any([signal, this.#ending.signal])
    if (startup !== undefined && !(await this.#hasStarted(startup, untilEnd))) return
    this.isStarted = true
    this.isReady = readiness === undefined
    const onReadiness = (isFine: boolean): void => {
      this.isReady = isFine && !signal.aborted
    }
    const onLiveness = (isFine: boolean): void => {
      if (!isFine) this.#restart()
    }
    await Promise.all([
      readiness && watchProbe(readiness, onReadiness, signal),
      liveness && watchProbe(liveness, onLiveness, untilEnd),
    ])
  }

  async #hasStarted(probe: PodProbe, signal: AbortSignal): Promise<boolean> {
    const enough = new AbortController()
    let hasStarted = false
    const onVerdict = (isFine: boolean): void => {
      hasStarted = isFine
      enough.abort()
    }
    await watchProbe(probe, onVerdict, AbortSignal.any([signal, enough.signal]))
    if (!hasStarted && !signal.aborted) this.#restart()
    return hasStarted
  }

  #restart(): void {
    void this.#stop(this.#o.graceMs)
  }
}

function toTerminated(
  spec: PlainObject,
  { code, signal }: ProcessExit,
  lines: readonly string[],
  startedAt: string,
): Terminated {
  const exitCode = code ?? (signal === 'SIGKILL' ? 137 : 143)
  const isLog = exitCode !== 0 && spec['terminationMessagePolicy'] === 'FallbackToLogsOnError'
  return {
    exitCode,
    reason: exitCode === 0 ? 'Completed' : 'Error',
    ...(isLog && { message: lines.join('\n').slice(-MESSAGE_BYTES) }),
    startedAt,
    finishedAt: now(),
  }
}

/** As Kubernetes writes times. */
export function now(): string {
  return new Date().toISOString().replace(/\.\d+Z$/, 'Z')
}
