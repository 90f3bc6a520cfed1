import type { Socket } from 'node:net'
import { ServeError } from '@tutti/errors'
import { Arena } from './arena.ts'
import { InstanceFrameReader } from './frame-reader.ts'
import { type InstanceFrame, OP, plainFrame } from './frames.ts'
import type { SharedMemoryLike } from './shared-memory.ts'
import { parseObject } from './wire-response.ts'
import { describeEnd, type ForkedProcess } from './zygote.ts'

/** The task of a process, in the words of python/tutti_worker/instance.py. */
export interface ProcessTask {
  readonly task: string
  readonly [setting: string]: unknown
}

/** Receiver of the frames of a process, also before the process is ready. */
export interface FrameReceiver {
  /**
   * Takes a frame.
   *
   * @returns a promise that resolves when the frame's tensors are copied; the next frame waits for it. Undefined if they are
   * copied already.
   * @throws ServeError MALFORMED_MESSAGE, and the process is killed.
   */
  onFrame(frame: InstanceFrame): Promise<void> | undefined
  /** Called once, at the very end, when the process is gone. */
  onEnd(error: ServeError): void
}

export interface InstanceProcessOptions {
  readonly process: ForkedProcess
  readonly memory: SharedMemoryLike | undefined
  /** Bytes of the arena, and the most bytes that a frame may bring. */
  readonly arenaBytes: number
  readonly task: ProcessTask
  /** Name of the instance in errors. */
  readonly name: string
  readonly receiver: FrameReceiver
  /** Called when the model's file is imported and its `initialize` begins. */
  readonly onInitialize?: (() => void) | undefined
}

/** Time that a process that closed its connection has to end by itself, and for which one that has ended may still be read. */
const LINGER_MS = 500

/** Process of an instance, from its fork to its end. Other instances that share the process end with it. */
export class InstanceProcess {
  readonly #options: InstanceProcessOptions
  readonly #process: ForkedProcess
  readonly #socket: Socket
  readonly #first = Promise.withResolvers<InstanceFrame>()
  /** Resolves when the process is gone and everything it had is given back. */
  readonly ended: Promise<void>
  #arena: Arena | undefined
  #hasEnded = false
  /** Resolves when the tensors of the last frame are copied; undefined if they are. Never rejects. */
  #taking: Promise<void> | undefined
  /** Frames that came meanwhile. */
  #unread: InstanceFrame[] = []
  /** Resolves when what was sent last has gone; undefined if it has. Never rejects. */
  #sending: Promise<void> | undefined

  /** Gives the process its task. */
  constructor(o: InstanceProcessOptions) {
    const { process } = o
    this.#options = o
    this.#process = process
    this.#socket = process.frames
    const reader = new InstanceFrameReader(o.arenaBytes, (frame) => this.#onFrame(frame))
    this.#socket.on('data', (chunk: Buffer) => this.#guard(() => reader.push(chunk)))
    this.#socket.on('close', () => this.#onClose())
    this.ended = process.ended.then((status) => this.#end(describeEnd(status)))
    this.#first.promise.catch(() => {})
    this.#begin()
  }

  /** Arena shared with the process; undefined where memory cannot be shared. */
  get arena(): Arena | undefined {
    return this.#arena
  }

  /**
   * Waits until the process has done the first part of its task.
   *
   * @returns the answer of the process.
   * @throws ServeError MODEL_LOAD_FAILED with the text of the model's exception, or an error that says how the process ended.
   */
  async ready(): Promise<Readonly<Record<string, unknown>>> {
    const frame = await this.#first.promise
    const answer = parseObject(frame.meta.toString())
    if (frame.op === OP.READY) {
      if (answer['arena'] !== true) this.#dropArena()
      return answer
    }
    throw new ServeError('MODEL_LOAD_FAILED', String(answer['message']))
  }

  send(...parts: readonly Uint8Array[]): void {
    this.sendAfter(undefined, ...parts)
  }

  /** Sends a frame once its tensors are copied. Frames that are sent later do not overtake it. */
  sendAfter(copied: Promise<unknown> | undefined, ...parts: readonly Uint8Array[]): void {
    if (copied === undefined && this.#sending === undefined) return this.#write(parts)
    const sending = this.#writeAfter(this.#sending, copied, parts).finally(() => {
      if (this.#sending === sending) this.#sending = undefined
    })
    this.#sending = sending
  }

  async #writeAfter(
    before: Promise<void> | undefined,
    copied: Promise<unknown> | undefined,
    parts: readonly Uint8Array[],
  ): Promise<void> {
    try {
      await before
      await copied
      this.#write(parts)
    } catch (error) {
      this.kill(ServeError.from(error).message)
    }
  }

  #write(parts: readonly Uint8Array[]): void {
    if (this.#socket.destroyed) return
    if (parts.length > 1) this.#socket.cork()
    for (const part of parts) this.#socket.write(part)
    if (parts.length > 1) this.#socket.uncork()
  }

  /** Answers a question of the process. */
  reply(id: number, answer: unknown): void {
    this.send(plainFrame(OP.REPLY, id, answer))
  }

  /** Kills the process. @param problem - reason in the errors of its requests. */
  kill(problem: string): void {
    this.#process.kill(problem)
  }

  #begin(): void {
    const { memory, arenaBytes, task } = this.#options
    let problem: string | undefined
    try {
      if (memory !== undefined) this.#arena = new Arena(memory.create(arenaBytes))
    } catch (error) {
      problem = ServeError.from(error).message
    }
    const arena = this.#arena && { path: this.#arena.mapping.path, bytes: this.#arena.mapping.size }
    this.send(plainFrame(OP.INIT, 0, { ...task, arena, problem, limit: arenaBytes }))
  }

  /**
   * Handles the end of the connection. Without it the process is of no use; mostly it has ended, and its exit is about to be
   * reported.
   */
  #onClose(): void {
    const timer = setTimeout(() => this.kill('it closed its connection'), LINGER_MS)
    void this.ended.then(() => clearTimeout(timer))
  }

  #onFrame(frame: InstanceFrame): void {
    if (frame.op === OP.READY || frame.op === OP.FAILED) this.#first.resolve(frame)
    else if (frame.op === OP.INITIALIZING) this.#options.onInitialize?.()
    else if (this.#taking === undefined) this.#take(frame)
    else this.#unread.push(frame)
  }

  #take(frame: InstanceFrame): void {
    const copied = this.#options.receiver.onFrame(frame)
    if (copied === undefined) return
    this.#socket.pause()
    this.#taking = copied.then(
      () => this.#guard(() => this.#takeUnread()),
      (error: unknown) => this.#fail(error),
    )
  }

  #takeUnread(): void {
    this.#taking = undefined
    while (this.#taking === undefined) {
      const frame = this.#unread.shift()
      if (frame === undefined) {
        this.#socket.resume()
        return
      }
      this.#take(frame)
    }
  }

  /** Runs a function that reads what the process wrote, which must not harm this process. */
  #guard(act: () => void): void {
    try {
      if (!this.#hasEnded) act()
    } catch (error) {
      this.#fail(error)
    }
  }

  #fail(error: unknown): void {
    this.#taking = undefined
    this.#unread = []
    this.kill(ServeError.from(error).message)
    this.#socket.destroy()
  }

  /**
   * Reads all output of the process, because the zygote may report its end earlier. A process that inherited the connection must
   * not keep it from ending.
   */
  async #readToEnd(): Promise<void> {
    if (this.#socket.closed) return
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, LINGER_MS)
      this.#socket.once('close', () => {
        clearTimeout(timer)
        resolve()
      })
    })
  }

  async #end(how: string): Promise<void> {
    await this.#readToEnd()
    this.#socket.destroy()
    while (this.#taking !== undefined) await this.#taking
    // The last lines may say why.
    const { output } = this.#process
    await output.ended()
    this.#hasEnded = true
    const { crashReport } = output
    const report = crashReport === '' ? '' : `\n\n${crashReport}`
    const error = new ServeError(
      'ENGINE_STOPPED',
      `Stub process '${this.#options.name}' is not healthy: ${this.#process.problem() ?? `it ${how}`}${report}`,
      { code: 'INTERNAL' },
    )
    this.#first.reject(error)
    this.#options.receiver.onEnd(error)
    this.#dropArena()
  }

  #dropArena(): void {
    const arena = this.#arena
    this.#arena = undefined
    void arena?.unmap()
  }
}
