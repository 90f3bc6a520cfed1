import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { bug } from '@tutti/errors'
import { type LoadedSession, loadSession, textOf } from './load-session.ts'
import type { OrtValue } from './ort-binding.ts'
import { ORT_DATATYPES } from './ort-datatype.ts'
import type {
  ReplyExtra,
  SessionPlan,
  SessionPort,
  SlotRecord,
  STOP,
  TensorParts,
} from './session-contract.ts'
import { APART, monotonicNs, planRecord, readRecords, slotBytes, writeRecords } from './slot.ts'
import { fromTexts, toTexts } from './texts.ts'

/*
 * The thread of one instance: it owns one ONNX Runtime session and executes the runs of one slot after the other,
 * synchronously, and then answers all of them at once. It ends only on STOP, between slots.
 */

/** Outputs up to this size travel inside the slot: a hop with 1 KiB took 12.1 us copied and 12.7 us as its own buffer. */
const INLINE_BYTES = 4096

function toOrtValue(
  { datatype }: SessionPort,
  dims: readonly number[],
  bytes: Uint8Array<ArrayBuffer>,
): OrtValue {
  const type = ORT_DATATYPES[datatype]
  if (type === undefined) throw bug('a datatype that sessions lack reached one')
  const { View } = type
  const data =
    View === null
      ? toTexts(bytes)
      : new View(bytes.buffer, bytes.byteOffset, bytes.byteLength / View.BYTES_PER_ELEMENT)
  return { type: type.name, data, dims, location: 'cpu' }
}

function toOutput(index: number, { data, dims }: OrtValue): TensorParts {
  const bytes = ArrayBuffer.isView(data)
    ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
    : fromTexts(data)
  return { index, dims, parts: [{ data: bytes }] }
}

/** The buffer of bytes that are alone in theirs. */
function toBuffer({ buffer, byteOffset }: Uint8Array): ArrayBuffer {
  if (!(buffer instanceof ArrayBuffer)) throw bug('an output lies in shared memory')
  // The receiver reads from the start.
  return byteOffset === 0 ? buffer : buffer.slice(byteOffset)
}

class SessionThread {
  readonly #port: MessagePort
  readonly #plan: SessionPlan
  readonly #loaded: LoadedSession

  constructor(port: MessagePort, plan: SessionPlan, loaded: LoadedSession) {
    this.#port = port
    this.#plan = plan
    this.#loaded = loaded
  }

  onMessage(slot: ArrayBuffer | typeof STOP): void {
    if (slot instanceof ArrayBuffer) return this.#execute(slot)
    this.#loaded.session.dispose()
    this.#port.close()
  }

  /** Executes the runs of a slot and puts their replies in its place, or into a larger one if they do not fit. */
  #execute(slot: ArrayBuffer): void {
    const extras: ReplyExtra[] = []
    const records = readRecords(slot).map((request) => this.#run(slot, request, extras))
    const size = slotBytes(records)
    const carrier = size <= slot.byteLength ? slot : new ArrayBuffer(size)
    writeRecords(carrier, records)
    if (extras.length === 0) return this.#port.postMessage(carrier, [carrier])
    const buffers = extras.filter((extra) => extra instanceof ArrayBuffer)
    this.#port.postMessage([carrier, ...extras], [carrier, ...buffers])
  }

  /** @returns the reply; what is not to stand in it goes to `extras`. */
  #run(slot: ArrayBuffer, { tensors, values: wanted }: SlotRecord, extras: ReplyExtra[]) {
    const { session, defaults } = this.#loaded
    const beginNs = monotonicNs()
    let inferStartNs = beginNs
    try {
      const feeds: Record<string, OrtValue> = { ...defaults }
      for (const { index, dims, byteOffset, byteLength } of tensors) {
        const input = this.#plan.inputs[index]
        if (input === undefined) throw bug('an input is not in the session plan')
        feeds[input.name] = toOrtValue(input, dims, new Uint8Array(slot, byteOffset, byteLength))
      }
      const names = wanted.map((index) => this.#plan.outputs[index]?.name ?? '')
      const fetches: Record<string, null> = {}
      for (const name of names) fetches[name] = null
      inferStartNs = monotonicNs()
      const results = session.run(feeds, fetches, {})
      const inferEndNs = monotonicNs()
      const outputs: TensorParts[] = []
      for (let i = 0; i < wanted.length; i += 1) {
        const value = results[names[i] ?? '']
        if (value !== undefined) outputs.push(toOutput(wanted[i] ?? 0, value))
      }
      const reply = [beginNs, inferStartNs, inferEndNs, monotonicNs(), 0]
      const record = planRecord(outputs, reply, INLINE_BYTES)
      for (const { byteOffset, parts } of record.tensors) {
        if (byteOffset === APART) for (const { data } of parts) extras.push(toBuffer(data))
      }
      return record
    } catch (error) {
      extras.push(textOf(error))
      const endNs = monotonicNs()
      return planRecord([], [beginNs, inferStartNs, endNs, endNs, 1])
    }
  }
}

if (parentPort === null) throw bug('session-thread is started as a thread')
const port = parentPort
const loaded = loadSession(port, workerData)
if (loaded !== undefined) {
  const thread = new SessionThread(port, workerData, loaded)
  port.on('message', (message) => thread.onMessage(message))
}
