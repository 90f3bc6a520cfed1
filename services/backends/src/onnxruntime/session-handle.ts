import { Worker } from 'node:worker_threads'
import { assert, ServeError } from '@tutti/errors'
import type { PackedRun } from './batch.ts'
import {
  type ReplyExtra,
  type SessionPlan,
  type SessionReply,
  type SessionStarted,
  STOP,
} from './session-contract.ts'
import { monotonicNs, readReplies, SLOT_HEADER_BYTES, type SlotReply, SlotWriter } from './slot.ts'
import type { SlotPool } from './slot-pool.ts'

export type SessionReady = Extract<SessionStarted, { readonly ready: true }>

/** What came back for one run. */
export interface RunReply {
  readonly reply: SlotReply
  /** Holds the outputs inside; the receiver's own. */
  readonly slot: ArrayBuffer
  /** Outputs apart, in their order. */
  readonly apart: readonly ArrayBuffer[]
  /** What copying the inputs took. Runs that went together share it evenly. */
  readonly fillNs: number
}

/** Takes the end of one run: exactly one of both. */
export interface RunReceiver {
  replied(reply: RunReply): void
  failed(error: ServeError): void
}

export interface SessionHandleOptions {
  readonly plan: SessionPlan
  /** The module that the thread runs. */
  readonly threadModule: URL
  readonly pool: SlotPool
}

interface OpenRun {
  readonly packed: PackedRun
  readonly receiver: RunReceiver
}

interface SentSlot {
  readonly runs: readonly OpenRun[]
  readonly fillNs: number
}

/** Small runs share a slot up to this size; a larger run has one to itself. */
const SHARED_SLOT_BYTES = 65_536

/**
 * One session on one thread. Runs given to it in one turn of the event loop travel in one message, are executed in order
 * and come back in one message: a message costs several times what a small model takes. Ends when the thread ends, by
 * `stop` or by itself.
 */
export class SessionHandle {
  readonly exited: Promise<void>
  readonly #thread: Worker
  readonly #pool: SlotPool
  #onEnd: ((problem: string) => void) | undefined
  #waiting: OpenRun[] = []
  readonly #sent: SentSlot[] = []
  #turn: NodeJS.Immediate | undefined
  #problem = 'no error was reported'
  #hasEnded = false

  constructor(o: SessionHandleOptions) {
    this.#pool = o.pool
    // No inherited flags: loaders of the host process have no business in the thread.
    this.#thread = new Worker(o.threadModule, { workerData: o.plan, execArgv: [] })
    this.#thread.on('error', (error) => {
      this.#problem = error instanceof Error ? error.message : String(error)
    })
    this.exited = new Promise((resolve) => {
      this.#thread.once('exit', () => {
        this.#hasEnded = true
        this.#onEnd?.(this.#problem)
        this.#failAll()
        resolve()
      })
    })
  }

  /** Resolves when the session is loaded. @throws ServeError MODEL_LOAD_FAILED with the runtime's text. */
  async started(): Promise<SessionReady> {
    const first = new Promise<SessionStarted>((resolve) => this.#thread.once('message', resolve))
    const ended = this.exited.then(() => ({ ready: false as const, problem: this.#problem }))
    const started = await Promise.race([first, ended])
    if (!started.ready) {
      await this.exited
      throw new ServeError('MODEL_LOAD_FAILED', started.problem)
    }
    this.#thread.on('message', (reply: SessionReply) => this.#settle(reply))
    return started
  }

  /** Calls back when the thread has ended, before its runs fail; at once if it has. */
  whenEnded(callback: (problem: string) => void): void {
    if (this.#hasEnded) callback(this.#problem)
    else this.#onEnd = callback
  }

  /** Hands a run to the thread at the end of this turn. Its inputs are viewed until then. */
  run(packed: PackedRun, receiver: RunReceiver): void {
    if (this.#hasEnded) {
      receiver.failed(this.#ended())
      return
    }
    this.#waiting.push({ packed, receiver })
    this.#turn ??= setImmediate(() => this.#flush())
  }

  /** Ends the thread after the runs that it has. */
  async stop(): Promise<void> {
    this.#flush()
    this.#thread.postMessage(STOP, [])
    await this.exited
  }

  #flush(): void {
    clearImmediate(this.#turn)
    this.#turn = undefined
    const waiting = this.#waiting
    this.#waiting = []
    let runs: OpenRun[] = []
    let size = SLOT_HEADER_BYTES
    for (const run of waiting) {
      if (runs.length > 0 && size + run.packed.size > SHARED_SLOT_BYTES) {
        this.#send(runs, size)
        runs = []
        size = SLOT_HEADER_BYTES
      }
      runs.push(run)
      size += run.packed.size
    }
    if (runs.length > 0) this.#send(runs, size)
  }

  #send(runs: readonly OpenRun[], size: number): void {
    const startNs = monotonicNs()
    const slot = this.#pool.take(size)
    const writer = new SlotWriter(slot)
    for (const { packed } of runs) packed.write(writer)
    this.#sent.push({ runs, fillNs: (monotonicNs() - startNs) / runs.length })
    this.#thread.postMessage(slot, [slot])
  }

  #settle(message: SessionReply): void {
    const sent = this.#sent.shift()
    assert(sent !== undefined, 'a session replied to nothing')
    const [slot, ...extras] = message instanceof ArrayBuffer ? [message] : message
    const replies = readReplies(slot)
    // Outputs are copied out, because the slot is used again; in one piece, because each buffer costs the collector.
    const own = slot.slice(0, usedBytes(replies))
    this.#pool.give(slot)
    let next = 0
    sent.runs.forEach(({ receiver }, i) => {
      const reply = replies[i]
      assert(reply !== undefined, 'a session left a run without a reply')
      const taken = extras.slice(next, next + extrasOf(reply))
      next += taken.length
      const [problem] = taken
      if (reply.outputs === undefined)
        receiver.failed(runtimeError(typeof problem === 'string' ? problem : 'unknown'))
      else
        receiver.replied({ reply, slot: own, apart: taken.filter(isBuffer), fillNs: sent.fillNs })
    })
  }

  #failAll(): void {
    clearImmediate(this.#turn)
    const runs = [...this.#sent.splice(0).flatMap((sent) => sent.runs), ...this.#waiting]
    this.#waiting = []
    for (const { receiver } of runs) receiver.failed(this.#ended())
  }

  #ended(): ServeError {
    return new ServeError('ENGINE_STOPPED', `the engine thread ended: ${this.#problem}`)
  }
}

/** How far into its slot the outputs of replies reach. */
function usedBytes(replies: readonly SlotReply[]): number {
  let used = 0
  for (const { outputs } of replies) {
    for (const { byteOffset, byteLength } of outputs ?? []) {
      if (byteOffset >= 0) used = Math.max(used, byteOffset + byteLength)
    }
  }
  return used
}

function extrasOf({ outputs }: SlotReply): number {
  if (outputs === undefined) return 1
  let count = 0
  for (const { byteOffset } of outputs) if (byteOffset < 0) count += 1
  return count
}

function isBuffer(extra: ReplyExtra | undefined): extra is ArrayBuffer {
  return extra instanceof ArrayBuffer
}

/**
 * ONNX Runtime's status codes by what its text says: the binding drops the number. 2 is INVALID_ARGUMENT, 6 an exception
 * in a kernel, 1 any other failure.
 */
function statusCode(text: string): number {
  if (/^(Got invalid dimensions|Invalid rank|Unexpected input data type)/.test(text)) return 2
  if (/Status Message: \/.*\.(cc|h):\d+/.test(text)) return 6
  return 1
}

function runtimeError(text: string): ServeError {
  return new ServeError('ENGINE_FAILED', `onnx runtime error ${statusCode(text)}: ${text}`)
}
