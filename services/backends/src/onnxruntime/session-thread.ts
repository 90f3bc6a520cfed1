import { readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { parentPort, workerData } from 'node:worker_threads'
import { assert } from '@tutti/errors'
import { decodeBytesTensor, encodeBytesTensor } from '@tutti/tensor'
import { type DefaultTensor, openInputs } from '../onnx/optional-inputs.ts'
import { createOrtSession, type OrtSession, type OrtValue } from './ort-binding.ts'
import { ORT_DATATYPES } from './ort-datatype.ts'
import type { SessionFailure, SessionPlan, SessionStarted, STOP } from './session-contract.ts'
import {
  alignOffset,
  monotonicNs,
  readRequest,
  replyHeaderBytes,
  type SlotTensor,
  writeReply,
} from './slot.ts'

/*
 * The thread of one instance: it owns one ONNX Runtime session and executes one slot at a time, synchronously. It ends
 * only on STOP, between executions.
 */

/** Outputs up to this size travel inside the slot: a hop with 1 KiB took 12.1 us copied and 12.7 us as its own buffer. */
const INLINE_BYTES = 4096

const utf8 = new TextEncoder()

interface OutputBytes {
  readonly index: number
  readonly dims: readonly number[]
  readonly data: Uint8Array
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
  if (!ArrayBuffer.isView(data)) {
    return { index, dims, data: encodeBytesTensor(data.map((text) => utf8.encode(text))) }
  }
  return { index, dims, data: new Uint8Array(data.buffer, data.byteOffset, data.byteLength) }
}

/** The buffer of bytes that are alone in theirs. */
function toBuffer(data: Uint8Array): ArrayBuffer {
  const { buffer } = data
  assert(buffer instanceof ArrayBuffer, 'an output lies in shared memory')
  // The receiver reads from the start.
  return data.byteOffset === 0 ? buffer : buffer.slice(data.byteOffset)
}

/** Puts a reply into the slot; the slot is replaced by a larger one if the header does not fit. */
function packReply(
  slot: ArrayBuffer,
  times: { readonly inferStartNs: number; readonly inferEndNs: number },
  outputs: readonly OutputBytes[],
): ArrayBuffer[] {
  const headerBytes = replyHeaderBytes(outputs)
  const carrier = headerBytes <= slot.byteLength ? slot : new ArrayBuffer(headerBytes)
  const message = [carrier]
  let offset = alignOffset(headerBytes)
  const placed = outputs.map(({ index, dims, data }) => {
    const { byteLength } = data
    if (byteLength > INLINE_BYTES || offset + byteLength > carrier.byteLength) {
      message.push(toBuffer(data))
      return { index, dims, byteOffset: -1, byteLength }
    }
    const tensor = { index, dims, byteOffset: offset, byteLength }
    new Uint8Array(carrier, offset, byteLength).set(data)
    offset = alignOffset(offset + byteLength)
    return tensor
  })
  writeReply(carrier, { ...times, outputs: placed })
  return message
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
    const { inputMetadata, outputMetadata } = this.#session
    const plain = ({ name, isTensor, shape }: (typeof inputMetadata)[number]) => ({
      name,
      isTensor,
      shape,
    })
    return { ready: true, inputs: inputMetadata.map(plain), outputs: outputMetadata.map(plain) }
  }

  /** @returns the message for the reply: the slot, then the outputs that have buffers of their own. */
  execute(slot: ArrayBuffer): ArrayBuffer[] {
    const request = readRequest(slot)
    const feeds: Record<string, OrtValue> = Object.fromEntries(this.#defaults)
    for (const tensor of request.inputs) {
      const input = this.#plan.inputs[tensor.index]
      assert(input !== undefined, `input ${tensor.index} is not in the session plan`)
      feeds[input.name] = toOrtValue(slot, tensor, input.datatype)
    }
    const names = request.outputs.map((index) => this.#plan.outputs[index]?.name ?? '')
    const fetches = Object.fromEntries(names.map((name) => [name, null]))
    const inferStartNs = monotonicNs()
    const results = this.#session.run(feeds, fetches, {})
    const inferEndNs = monotonicNs()
    const outputs: OutputBytes[] = []
    request.outputs.forEach((index, i) => {
      const value = results[names[i] ?? '']
      if (value !== undefined) outputs.push(toOutputBytes(index, value))
    })
    return packReply(slot, { inferStartNs, inferEndNs }, outputs)
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
    try {
      const reply = thread.execute(message)
      port.postMessage(reply.length === 1 ? reply[0] : reply, reply)
    } catch (error) {
      port.postMessage({ problem: textOf(error) } satisfies SessionFailure)
    }
  })
}

assert(parentPort !== null, 'session-thread is started as a thread')
const sessionPlan: SessionPlan = workerData
serve(parentPort, sessionPlan)
