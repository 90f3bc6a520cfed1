import type { Worker } from 'node:worker_threads'
import { bug, type ServeError } from '@tutti/errors'
import type { NamedTensor } from '@tutti/tensor'
import { runtimeError } from './run-errors.ts'
import { type SessionPort, type SessionReply, STOP } from './session-contract.ts'
import {
  APART,
  monotonicNs,
  readRecords,
  SLOT_HEADER_BYTES,
  type SlotPool,
  type SlotRecord,
  slotBytes,
  writeRecords,
} from './slot.ts'

/** What a session executes at once. */
export interface SessionRun {
  /** Its inputs, viewed until the end of the turn, and the outputs wanted. */
  readonly record: SlotRecord
  /** Called once, at its end. */
  done(result: RunReply | ServeError): void
}

/** What came back for one run. */
export interface RunReply {
  /** The receiver's own. */
  readonly outputs: readonly NamedTensor[]
  /** Nanoseconds of the clock that all threads share: taken up, run begun, run ended, outputs ready. */
  readonly timesNs: readonly number[]
  /** What copying the inputs took. Runs that went together share it evenly. */
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
  readonly #thread: Worker
  readonly #outputs: readonly SessionPort[]
  readonly #pool: SlotPool
  readonly #waiting: SessionRun[] = []
  readonly #sent: { readonly runs: readonly SessionRun[]; readonly fillNs: number }[] = []
  #turn: NodeJS.Immediate | undefined
  #endError: ServeError | undefined

  /** @param thread - has loaded its session. */
  constructor(thread: Worker, outputs: readonly SessionPort[], pool: SlotPool) {
    this.#thread = thread
    this.#outputs = outputs
    this.#pool = pool
    thread.on('message', (reply: SessionReply) => this.#settle(reply))
  }

  /** Hands a run to the thread at the end of this turn. It ends with ENGINE_STOPPED if the thread does. */
  run(run: SessionRun): void {
    if (this.#endError !== undefined) return run.done(this.#endError)
    this.#waiting.push(run)
    this.#turn ??= setImmediate(() => this.#flush())
  }

  /** Asks the thread to end after the runs that it has. */
  stop(): void {
    this.#flush()
    this.#thread.postMessage(STOP, [])
  }

  /** The thread has ended. */
  fail(error: ServeError): void {
    this.#endError = error
    clearImmediate(this.#turn)
    const runs = [...this.#sent.splice(0).flatMap((sent) => sent.runs), ...this.#waiting.splice(0)]
    for (const run of runs) run.done(error)
  }

  #flush(): void {
    clearImmediate(this.#turn)
    this.#turn = undefined
    let runs: SessionRun[] = []
    let size = SLOT_HEADER_BYTES
    for (const run of this.#waiting.splice(0)) {
      if (runs.length > 0 && size + run.record.size > SHARED_SLOT_BYTES) {
        this.#send(runs, size)
        runs = []
        size = SLOT_HEADER_BYTES
      }
      runs.push(run)
      size += run.record.size
    }
    if (runs.length > 0) this.#send(runs, size)
  }

  #send(runs: readonly SessionRun[], size: number): void {
    const startNs = monotonicNs()
    const slot = this.#pool.take(size)
    writeRecords(
      slot,
      runs.map(({ record }) => record),
    )
    this.#sent.push({ runs, fillNs: (monotonicNs() - startNs) / runs.length })
    this.#thread.postMessage(slot, [slot])
  }

  #settle(message: SessionReply): void {
    const sent = this.#sent.shift()
    if (sent === undefined) throw bug('a session replied to nothing')
    const [slot, ...extras] = message instanceof ArrayBuffer ? [message] : message
    const replies = readRecords(slot)
    // Outputs are copied out, because the slot is used again; in one piece, because each buffer costs the collector.
    const own = slot.slice(0, slotBytes(replies))
    this.#pool.give(slot)
    let next = 0
    sent.runs.forEach((run, i) => {
      const { tensors, values } = replies[i] ?? { tensors: [], values: [] }
      const outputs = tensors.map(({ index, dims, byteOffset, byteLength }): NamedTensor => {
        const buffer = byteOffset === APART ? extras[next++] : own
        const port = this.#outputs[index]
        if (port === undefined || !(buffer instanceof ArrayBuffer)) {
          throw bug('an output is not known')
        }
        const data = new Uint8Array(buffer, Math.max(0, byteOffset), byteLength)
        return { name: port.name, datatype: port.datatype, shape: dims, data }
      })
      if (values[4] === 0) run.done({ outputs, timesNs: values, fillNs: sent.fillNs })
      else run.done(runtimeError(extras[next++]))
    })
  }
}
