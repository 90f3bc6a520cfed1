import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import type { Socket } from 'node:net'
import { constants } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Clock, LineSplitter } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { type Channel, ChannelListener } from './channel-listener.ts'
import type { ProcessOutput } from './process-output.ts'

/** Specification of a zygote: its interpreter, and the modules that it imports before it is forked. */
export interface ZygoteSpec {
  /** Interpreter: a name on PATH, or a path. */
  readonly interpreter: string
  /** Folder of the environment that the interpreter belongs to; '' for none. */
  readonly environment: string
  readonly modules: readonly string[]
}

/** Exit status of a process, or minus the number of the signal that ended it. */
export type EndStatus = number

/** Process that was forked for one or several instances, as one of them sees it. */
export interface ForkedProcess {
  /** The instance's own connection. */
  readonly frames: Socket
  /** Output that the process prints. */
  readonly output: ProcessOutput
  /** Resolves when the process and all others in its group have ended; undefined if the status is not known. */
  readonly ended: Promise<EndStatus | undefined>
  /** Kills the process and its group with SIGKILL. @param problem - reason in the errors of all its instances. */
  kill(problem: string): void
  /** Returns the problem of the first `kill`; undefined before that. */
  problem(): string | undefined
}

/** Time limit, in milliseconds, from a process's fork until it has connected. */
export interface StartLimit {
  readonly clock: Clock
  readonly ms: number
}

interface Fork {
  readonly onEvent: (event: ZygoteEvent) => void
}

interface ZygoteEvent {
  readonly event: string
  readonly id?: number
  readonly status?: number
  readonly problem?: string
}

const PROGRAM = fileURLToPath(new URL('../../python/tutti_worker/__main__.py', import.meta.url))
const WANTED =
  'want Python 3.9 or newer with NumPy on PATH, or named by tutti serve --python PATH (auto finds or makes one) or tutti step --backend-config=python,interpreter=PATH'
const CONTROL_FD = 3
const MOST_LINE_BYTES = 65_536
const LAST_WORDS_BYTES = 2048

/** Process that has imported the modules of instances and forks them. It ends when its control socket closes. */
export class Zygote {
  readonly #child: ChildProcess
  readonly #control: Socket
  readonly #listener: ChannelListener
  readonly #forks = new Map<number, Fork>()
  /** Resolves when the zygote has ended, for any reason. */
  readonly exited: Promise<void>
  #nextId = 1
  #lastWords = ''
  #hasExited = false
  #onReady: ((event: ZygoteEvent) => void) | undefined

  private constructor(child: ChildProcess, control: Socket, listener: ChannelListener) {
    this.#child = child
    this.#control = control
    this.#listener = listener
    const lines = new LineSplitter(MOST_LINE_BYTES, { onLine: (line) => this.#onLine(line) })
    control.on('data', (chunk: Buffer) => lines.push(chunk))
    control.on('error', () => control.destroy())
    child.stderr?.on('data', (chunk: Buffer) => {
      this.#lastWords = (this.#lastWords + chunk.toString()).slice(-LAST_WORDS_BYTES)
    })
    this.exited = new Promise((resolve) => {
      child.once('close', () => {
        this.#hasExited = true
        listener.close()
        for (const [id, fork] of this.#forks) fork.onEvent({ event: 'ended', id })
        this.#forks.clear()
        resolve()
      })
    })
  }

  /**
   * Starts a zygote; the caller closes it.
   *
   * @throws ServeError MODEL_LOAD_FAILED if the interpreter is absent, too old, or lacks a module.
   */
  static async start(spec: ZygoteSpec): Promise<Zygote> {
    const listener = await ChannelListener.open()
    const [program, ...rest] = commandOf(spec)
    const child = spawn(
      program,
      rest,
      // Detached: signals of a terminal are for the server, which ends its zygotes by itself.
      { stdio: ['ignore', 'ignore', 'pipe', 'pipe'], detached: true, cwd: '/' },
    )
    const failed = new Promise<never>((_, reject) => child.once('error', reject))
    const control = child.stdio[CONTROL_FD]
    try {
      if (!isSocket(control)) await failed
      else return await Promise.race([new Zygote(child, control, listener).#ready(spec), failed])
    } catch (error) {
      listener.close()
      throw toLoadError(spec, error)
    }
    throw new ServeError('INTERNAL', 'bug: a zygote neither started nor failed')
  }

  /** Sets whether the zygote keeps this process alive. */
  hold(isHeld: boolean): void {
    const act = isHeld ? 'ref' : 'unref'
    this.#child[act]()
    this.#control[act]()
    const { stderr } = this.#child
    if (isSocket(stderr)) stderr[act]()
  }

  /**
   * Forks a process for `instances` instances and waits until all have connected.
   *
   * @param limit - on the time for that.
   * @returns the process as each instance sees it.
   * @throws ServeError ENGINE_STOPPED if the process ended first, or did not connect in time.
   */
  async fork(
    output: ProcessOutput,
    instances: number,
    limit: StartLimit,
  ): Promise<ForkedProcess[]> {
    const id = this.#nextId++
    const sockets: Socket[] = []
    const connected = Promise.withResolvers<void>()
    const ended = Promise.withResolvers<EndStatus | undefined>()
    const fail = (problem: string): void => {
      const error = new ServeError('ENGINE_STOPPED', `the process of the model ${problem}`)
      connected.reject(error)
    }
    const onChannel = (channel: Channel, socket: Socket): void => {
      if (channel !== 'frames') output.take(channel, socket)
      else if (sockets.push(socket) === instances) connected.resolve()
    }
    const { token, forget } = this.#listener.expect(onChannel)
    this.#forks.set(id, {
      onEvent: ({ event, status, problem }) => {
        if (event === 'forked') return
        forget()
        fail(event === 'failed' ? `cannot be forked: ${problem}` : describeEnd(status))
        ended.resolve(status)
      },
    })
    if (this.#hasExited) fail('cannot be forked: the zygote has ended')
    else this.#order({ order: 'fork', id, address: this.#listener.address, token, instances })
    const stopTimer = limit.clock.setTimer(limit.ms, () => {
      fail(`has not connected after ${limit.ms / 1000} s (stub-timeout-seconds)`)
      this.#order({ order: 'kill', id })
    })
    try {
      await connected.promise
    } catch (error) {
      for (const socket of sockets) socket.destroy()
      throw error
    } finally {
      stopTimer()
      forget()
    }
    let problem: string | undefined
    const kill = (why: string): void => {
      problem ??= why
      this.#order({ order: 'kill', id })
    }
    const process = { output, ended: ended.promise, kill, problem: () => problem }
    return sockets.map((frames) => ({ ...process, frames }))
  }

  /** Ends the zygote and all processes forked from it. */
  async close(): Promise<void> {
    this.hold(true)
    this.#control.destroy()
    await this.exited
  }

  #order(order: unknown): void {
    if (!this.#control.destroyed) this.#control.write(`${JSON.stringify(order)}\n`)
  }

  async #ready(spec: ZygoteSpec): Promise<Zygote> {
    const first = new Promise<ZygoteEvent>((resolve) => {
      this.#onReady = resolve
    })
    const ended = this.exited.then(() => ({ event: 'unusable', problem: this.#lastWords.trim() }))
    const { event, problem } = await Promise.race([first, ended])
    if (event === 'ready') return this
    await this.exited
    const text = `'${spec.interpreter}' cannot run models: ${problem || 'it ended without a message'}; ${WANTED}`
    throw new ServeError('MODEL_LOAD_FAILED', text)
  }

  #onLine(line: string): void {
    const event: ZygoteEvent = JSON.parse(line)
    if (event.id === undefined) this.#onReady?.(event)
    else {
      this.#forks.get(event.id)?.onEvent(event)
      if (event.event !== 'forked') this.#forks.delete(event.id)
    }
  }
}

/**
 * Builds the command of a zygote. It activates the environment, as Triton does: packages set variables there, as conda's do in
 * etc/conda/activate.d.
 */
function commandOf(spec: ZygoteSpec): readonly [string, ...string[]] {
  const { interpreter, environment, modules } = spec
  const zygote = ['-B', '-u', PROGRAM, String(CONTROL_FD), environment, ...modules]
  const script = join(environment, 'bin', 'activate')
  if (environment === '' || !existsSync(script)) return [interpreter, ...zygote]
  return ['bash', '-c', 'source "$0" && exec "$@"', script, interpreter, ...zygote]
}

/** Describes how a process ended, as a phrase that follows a noun. */
export function describeEnd(status: EndStatus | undefined): string {
  if (status === undefined) return 'ended'
  if (status >= 0) return `exited with status ${status}`
  const [name = `signal ${-status}`] =
    Object.entries(constants.signals).find(([, number]) => number === -status) ?? []
  return status === -9 ? `was killed (${name}), as when memory runs out` : `was ended by ${name}`
}

function isSocket(stream: unknown): stream is Socket {
  return stream !== null && typeof stream === 'object' && 'ref' in stream
}

function toLoadError(spec: ZygoteSpec, error: unknown): ServeError {
  if (error instanceof ServeError) return error
  const { message } = ServeError.from(error)
  const text = `Python interpreter '${spec.interpreter}' cannot be started (${message}); ${WANTED}`
  return new ServeError('MODEL_LOAD_FAILED', text, { cause: error })
}
