import type { Worker } from 'node:worker_threads'
import { bug, type ServeError } from '@tutti/errors'
import type { NamedTensor } from '@tutti/tensor'
import { runtimeError } from './run-errors.ts'
import {
  type SessionPort,
  type SessionReply,
  type SessionRun,
  type SlotRecord,
  type SlotTensor,
  STOP,
  type TensorParts,
} from './session-contract.ts'

const NUMBER_BYTES = 8
const RECORD_NUMBERS = 3
const TENSOR_NUMBERS = 4
/** ONNX Runtime's own allocation alignment, enough for its vector loads. */
const ALIGNMENT = 64

/** What a slot takes besides its records. */
export const SLOT_HEADER_BYTES = ALIGNMENT
/** In place of an offset: the data is in a buffer of its own. */
export const APART = -1
const NO_PARTS: TensorParts['parts'] = []

function align(offset: number): number {
  return Math.ceil(offset / ALIGNMENT) * ALIGNMENT
}

/** Bytes of a slot for these records. */
export function slotBytes(records: readonly SlotRecord[]): number {
  return records.reduce((sum, { size }) => sum + size, SLOT_HEADER_BYTES)
}

/** Plans where the tensors of a record go: those above `inlineBytes` in buffers of their own. */
export function planRecord(
  tensors: readonly TensorParts[],
  values: readonly number[],
  inlineBytes = Number.POSITIVE_INFINITY,
): SlotRecord {
  let numbers = RECORD_NUMBERS + values.length
  for (const { dims } of tensors) numbers += TENSOR_NUMBERS + dims.length
  let size = align(numbers * NUMBER_BYTES)
  const planned = tensors.map(({ index, dims, parts }) => {
    let byteLength = 0
    for (const { data } of parts) byteLength += data.byteLength
    const byteOffset = byteLength > inlineBytes ? APART : size
    if (byteOffset !== APART) size = align(size + byteLength)
    return { index, dims, parts, byteOffset, byteLength }
  })
  return { tensors: planned, values, size }
}

/** Writes records one behind the other; `slot` holds them and a header. Copies the tensors that are not apart. */
export function writeRecords(slot: ArrayBuffer, records: readonly SlotRecord[]): void {
  const numbers = new Float64Array(slot)
  const bytes = new Uint8Array(slot)
  numbers[0] = records.length
  let begin = SLOT_HEADER_BYTES
  for (const { tensors, values, size } of records) {
    let at = begin / NUMBER_BYTES
    numbers[at++] = size
    numbers[at++] = tensors.length
    numbers[at++] = values.length
    for (const { index, dims, parts, byteOffset, byteLength } of tensors) {
      numbers[at++] = index
      numbers[at++] = dims.length
      numbers[at++] = byteOffset
      numbers[at++] = byteLength
      for (const extent of dims) numbers[at++] = extent
      if (byteOffset === APART) continue
      let offset = begin + byteOffset
      for (const { data } of parts) {
        bytes.set(data, offset)
        offset += data.byteLength
      }
    }
    for (const value of values) numbers[at++] = value
    begin += size
  }
}

/** Reads what `writeRecords` wrote. */
export function readRecords(slot: ArrayBuffer): SlotRecord[] {
  const numbers = new Float64Array(slot)
  let begin = SLOT_HEADER_BYTES
  let at = 0
  const next = (): number => {
    const value = numbers[at++]
    if (value === undefined) throw bug('a slot record is cut short')
    return value
  }
  const list = (length: number): number[] => {
    const values: number[] = []
    for (let i = 0; i < length; i += 1) values.push(next())
    return values
  }
  const records: SlotRecord[] = []
  for (let left = next(); left > 0; left -= 1) {
    at = begin / NUMBER_BYTES
    const size = next()
    const tensorCount = next()
    const valueCount = next()
    const tensors: SlotTensor[] = []
    for (let i = 0; i < tensorCount; i += 1) {
      const index = next()
      const rank = next()
      const offset = next()
      const byteLength = next()
      const byteOffset = offset === APART ? APART : begin + offset
      tensors.push({ index, dims: list(rank), parts: NO_PARTS, byteOffset, byteLength })
    }
    records.push({ tensors, values: list(valueCount), size })
    begin += size
  }
  return records
}

const SMALLEST_BYTES = 4096
const LARGE_STEP_BYTES = 1024 * 1024

/** Powers of two up to 1 MiB, then whole MiB, so that a slot fits requests of nearly the same size again. */
function roundSize(size: number): number {
  if (size > LARGE_STEP_BYTES) return Math.ceil(size / LARGE_STEP_BYTES) * LARGE_STEP_BYTES
  return size <= SMALLEST_BYTES ? SMALLEST_BYTES : 1 << (32 - Math.clz32(size - 1))
}

/** Keeps slots for reuse: a fresh 786 KB buffer costs page faults of up to 400 us. Over its bound, the size that came first goes. */
export class SlotPool {
  readonly #slots = new Map<number, ArrayBuffer[]>()
  readonly #maxBytes: number
  #bytes = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** A slot of at least `size` bytes, with whatever it held before. */
  take(size: number): ArrayBuffer {
    const rounded = roundSize(size)
    const slot = this.#slots.get(rounded)?.pop()
    if (slot !== undefined) this.#bytes -= rounded
    return slot ?? new ArrayBuffer(rounded)
  }

  give(slot: ArrayBuffer): void {
    const size = slot.byteLength
    if (size !== roundSize(size) || size > this.#maxBytes) return
    const same = this.#slots.get(size)
    if (same === undefined) this.#slots.set(size, [slot])
    else same.push(slot)
    this.#bytes += size
    if (this.#bytes <= this.#maxBytes) return
    for (const [first, slots] of this.#slots) {
      this.#slots.delete(first)
      this.#bytes -= first * slots.length
      if (this.#bytes <= this.#maxBytes) return
    }
  }
}

/** Monotonic nanoseconds, the same clock on every thread of the process. */
export function monotonicNs(): number {
  const [seconds, ns] = process.hrtime()
  return seconds * 1e9 + ns
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
    const records = runs.map(({ record }) => record)
    writeRecords(slot, records)
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
