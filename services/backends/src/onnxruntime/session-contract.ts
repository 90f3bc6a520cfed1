import type { Datatype } from '@tutti/tensor'
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
