import { readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { parentPort, workerData } from 'node:worker_threads'
import { assert } from '@tutti/errors'
import { decodeBytesTensor, encodeBytesTensor } from '@tutti/tensor'
import { type DefaultTensor, openInputs } from '../onnx/optional-inputs.ts'
import { createOrtSession, type OrtSession, type OrtValue } from './ort-binding.ts'
import { ORT_DATATYPES } from './ort-datatype.ts'
import type {
  ReplyExtra,
  SessionPlan,
  SessionReply,
  SessionStarted,
  STOP,
} from './session-contract.ts'
import {
  APART,
  monotonicNs,
  type Planned,
  planOutputs,
  readRequests,
  SLOT_HEADER_BYTES,
  type SlotReply,
  type SlotRequest,
  type SlotTensor,
  type SlotTimes,
  SlotWriter,
} from './slot.ts'

/*
 * The thread of one instance: it owns one ONNX Runtime session and executes the runs of one slot after the other,
 * synchronously, and then answers all of them at once. It ends only on STOP, between slots.
 */

/** Outputs up to this size travel inside the slot: a hop with 1 KiB took 12.1 us copied and 12.7 us as its own buffer. */
const INLINE_BYTES = 4096

const utf8 = new TextEncoder()

interface OutputBytes {
  readonly index: number
  readonly dims: readonly number[]
  readonly byteLength: number
  readonly data: Uint8Array
}

/** A run that is over: with outputs, or with the runtime's text. */
interface Executed extends SlotTimes {
  readonly outputs: readonly OutputBytes[] | undefined
  readonly problem?: string
}

function toTexts(data: Uint8Array): string[] {
  // Buffer and not TextDecoder, which would drop a leading byte order mark.
  return decodeBytesTensor(data).map((e) =>
    Buffer.from(e.buffer, e.byteOffset, e.byteLength).toString('utf8'),
  )
}

function toOrtValue(
  slot: ArrayBuffer,
  tensor: Omit<SlotTensor, 'index'>,
  datatype: SessionPlan['inputs'][number]['datatype'],
): OrtValue {
  const type = ORT_DATATYPES[datatype]
  assert(type !== undefined, `datatype ${datatype} reached a session thread`)
  const { byteOffset, byteLength, dims } = tensor
  const data =
    type.view === null
      ? toTexts(new Uint8Array(slot, byteOffset, byteLength))
      : type.view(slot, byteOffset, byteLength)
  return { type: type.name, data, dims, location: 'cpu' }
}

function toOutputBytes(index: number, value: OrtValue): OutputBytes {
  const { data, dims } = value
  const bytes = ArrayBuffer.isView(data)
    ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
    : encodeBytesTensor(data.map((text) => utf8.encode(text)))
  return { index, dims, byteLength: bytes.byteLength, data: bytes }
}

/** The buffer of bytes that are alone in theirs. */
function toBuffer(data: Uint8Array): ArrayBuffer {
  const { buffer } = data
  assert(buffer instanceof ArrayBuffer, 'an output lies in shared memory')
  // The receiver reads from the start.
  return data.byteOffset === 0 ? buffer : buffer.slice(data.byteOffset)
}

/** Puts the replies into the slot, over the requests; the slot is replaced by a larger one if they do not fit. */
function packReplies(slot: ArrayBuffer, executed: readonly Executed[]): SessionReply {
  const plans = executed.map(({ outputs }) => planOutputs(outputs, INLINE_BYTES))
  const size = plans.reduce((sum, plan) => sum + plan.size, SLOT_HEADER_BYTES)
  const carrier = size <= slot.byteLength ? slot : new ArrayBuffer(size)
  const writer = new SlotWriter(carrier)
  const extras: ReplyExtra[] = []
  executed.forEach((run, i) => {
    const plan = plans[i]
    assert(plan !== undefined, 'a run has no plan for its reply')
    if (run.problem !== undefined) extras.push(run.problem)
    writeOutputs(writer, run, plan, extras)
  })
  return extras.length === 0 ? carrier : [carrier, ...extras]
}

function writeOutputs(
  writer: SlotWriter,
  run: Executed,
  plan: Planned<SlotReply['outputs']>,
  extras: ReplyExtra[],
): void {
  const begin = writer.addReply(run, plan)
  run.outputs?.forEach(({ data }, i) => {
    const byteOffset = plan.record?.[i]?.byteOffset ?? APART
    if (byteOffset === APART) extras.push(toBuffer(data))
    else writer.bytes.set(data, begin + byteOffset)
  })
}

class SessionThread {
  readonly #plan: SessionPlan
  readonly #session: OrtSession
  readonly #defaults = new Map<string, OrtValue>()

  constructor(plan: SessionPlan) {
    this.#plan = plan
    this.#session = createOrtSession()
    if (plan.optionalInputs.length === 0) this.#session.loadModel(plan.modelFile, plan.options)
    else this.#loadOpened(plan)
  }

  /** Loads the model with its optional inputs opened, from memory instead of by path. */
  #loadOpened(plan: SessionPlan): void {
    const { model, defaults } = openInputs(
      readFileSync(plan.modelFile),
      new Set(plan.optionalInputs),
    )
    for (const tensor of defaults) this.#defaults.set(tensor.name, toDefault(tensor))
    this.#session.loadModel(model.buffer, model.byteOffset, model.byteLength, {
      ...plan.options,
      extra: {
        'session.model_external_initializers_file_folder_path': dirname(plan.modelFile),
        ...plan.options.extra,
      },
    })
  }

  started(): SessionStarted {
    const outputs = this.#session.outputMetadata.map(({ name, shape }) => ({ name, shape }))
    return { ready: true, outputs }
  }

  /** Executes every run of a slot. @returns the message for the reply. */
  execute(slot: ArrayBuffer): SessionReply {
    return packReplies(
      slot,
      readRequests(slot).map((request) => this.#run(slot, request)),
    )
  }

  #run(slot: ArrayBuffer, request: SlotRequest): Executed {
    const beginNs = monotonicNs()
    let inferStartNs = beginNs
    try {
      const feeds = this.#feeds(slot, request)
      const names = request.outputs.map((index) => this.#plan.outputs[index]?.name ?? '')
      const fetches: Record<string, null> = {}
      for (const name of names) fetches[name] = null
      inferStartNs = monotonicNs()
      const results = this.#session.run(feeds, fetches, {})
      const inferEndNs = monotonicNs()
      const outputs: OutputBytes[] = []
      request.outputs.forEach((index, i) => {
        const value = results[names[i] ?? '']
        if (value !== undefined) outputs.push(toOutputBytes(index, value))
      })
      return { beginNs, inferStartNs, inferEndNs, endNs: monotonicNs(), outputs }
    } catch (error) {
      const endNs = monotonicNs()
      const problem = textOf(error)
      return { beginNs, inferStartNs, inferEndNs: endNs, endNs, outputs: undefined, problem }
    }
  }

  #feeds(slot: ArrayBuffer, request: SlotRequest): Record<string, OrtValue> {
    const feeds: Record<string, OrtValue> = Object.fromEntries(this.#defaults)
    for (const tensor of request.inputs) {
      const input = this.#plan.inputs[tensor.index]
      assert(input !== undefined, `input ${tensor.index} is not in the session plan`)
      feeds[input.name] = toOrtValue(slot, tensor, input.datatype)
    }
    return feeds
  }

  dispose(): void {
    this.#session.dispose()
  }
}

function toDefault(tensor: DefaultTensor): OrtValue {
  // A buffer of its own, so that it is aligned.
  const data = new Uint8Array(tensor.data)
  return toOrtValue(
    data.buffer,
    { dims: tensor.dims, byteOffset: 0, byteLength: data.byteLength },
    tensor.datatype,
  )
}

function textOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).trim()
}

function serve(port: NonNullable<typeof parentPort>, plan: SessionPlan): void {
  let thread: SessionThread
  try {
    thread = new SessionThread(plan)
    port.postMessage(thread.started())
  } catch (error) {
    port.postMessage({ ready: false, problem: textOf(error) } satisfies SessionStarted)
    port.close()
    return
  }
  port.on('message', (message: ArrayBuffer | typeof STOP) => {
    if (!(message instanceof ArrayBuffer)) {
      thread.dispose()
      port.close()
      return
    }
    const reply = thread.execute(message)
    port.postMessage(reply, toBuffers(reply))
  })
}

function toBuffers(reply: SessionReply): ArrayBuffer[] {
  if (reply instanceof ArrayBuffer) return [reply]
  return reply.filter((part) => part instanceof ArrayBuffer)
}

assert(parentPort !== null, 'session-thread is started as a thread')
const sessionPlan: SessionPlan = workerData
serve(parentPort, sessionPlan)
