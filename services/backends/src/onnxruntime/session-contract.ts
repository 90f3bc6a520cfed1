import type { ServeError } from '@tutti/errors'
import type { Datatype, NamedTensor } from '@tutti/tensor'
import type { OrtSessionOptions } from './ort-binding.ts'

/** A tensor that can be fed or fetched, in the order that slots count them. */
export interface SessionPort {
  readonly name: string
  readonly datatype: Datatype
  /** An input with a default in the model, which a request may leave out. */
  readonly optional: boolean
}

/** What a session thread is started with. Plain data: it is cloned. */
export interface SessionPlan {
  /** Absolute path of the .onnx file. */
  readonly modelFile: string
  readonly options: OrtSessionOptions
  readonly inputs: readonly SessionPort[]
  readonly outputs: readonly SessionPort[]
}

/** The thread's first message: the session is loaded, or why not. */
export interface SessionStarted {
  readonly problem?: string
}

/** What stands behind the slot of a reply, in the order of its records: outputs apart, and texts of runs that failed. */
export type ReplyExtra = ArrayBuffer | string

/** The slot with the replies to all runs of one message, alone or with its extras. */
export type SessionReply = ArrayBuffer | readonly [slot: ArrayBuffer, ...extras: ReplyExtra[]]

/** Asks the thread to end. It is never terminated: that aborts the process if a run is going on. */
export const STOP = 'stop'

/*
 * A slot is the one ArrayBuffer that carries runs to a session thread and their replies back. Its first number counts the
 * records; a record stands for one run, begins on a 64-byte boundary with float64 numbers, and ends with tensor data, each
 * tensor on a 64-byte boundary. The message is the bare buffer: structured clone of even a small object costs more than a
 * 16-float model takes, and one message for many runs is what makes such models cheap.
 *
 * A record's numbers: its bytes, how many tensors and values it has, per tensor {index, rank, offset, byteLength,
 * extents...}, then the values. Offsets count from the record; -1 says that the data is in a buffer of its own, the next
 * one behind the slot.
 * Request: tensors are inputs, values the indexes of the wanted outputs.
 * Reply: tensors are outputs, values the times when it was taken up, begun, ended and ready, in nanoseconds, and 1 if the
 * run failed; its text is the next one behind the slot then.
 */

/** A tensor to be written: the data of its parts, one behind the other. */
export interface TensorParts {
  readonly index: number
  readonly dims: readonly number[]
  readonly parts: readonly { readonly data: Uint8Array }[]
}

/** A tensor with its place: from the start of its record when it is written, from the start of the slot when it is read. */
export interface SlotTensor extends TensorParts {
  readonly byteOffset: number
  readonly byteLength: number
}

/** A record to be written, or one that was read: its tensors have no parts then. */
export interface SlotRecord {
  readonly tensors: readonly SlotTensor[]
  readonly values: readonly number[]
  /** Bytes. */
  readonly size: number
}

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
