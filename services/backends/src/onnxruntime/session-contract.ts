import type { Datatype } from '@tutti/tensor'
import type { OrtMetadata, OrtSessionOptions } from './ort-binding.ts'

/** What a session thread is started with. Plain data: it is cloned. */
export interface SessionPlan {
  /** Absolute path of the .onnx file. */
  readonly modelFile: string
  readonly options: OrtSessionOptions
  /** The inputs that can be fed, in the order that slots count them. */
  readonly inputs: readonly { readonly name: string; readonly datatype: Datatype }[]
  /** The outputs in the order that slots count them. */
  readonly outputs: readonly { readonly name: string; readonly datatype: Datatype }[]
  /** Inputs with a default in the model that requests may set (see openInputs). */
  readonly optionalInputs: readonly string[]
}

/** The thread's first message: the session is loaded, or not. */
export type SessionStarted =
  | { readonly ready: true; readonly outputs: readonly OrtMetadata[] }
  | { readonly ready: false; readonly problem: string }

/** What stands behind the slot of a reply, in the order of its records: outputs apart, and texts of runs that failed. */
export type ReplyExtra = ArrayBuffer | string

/** The slot with the replies to all runs of one message, alone or with its extras. */
export type SessionReply = ArrayBuffer | readonly [slot: ArrayBuffer, ...extras: ReplyExtra[]]

/** Asks the thread to end. It is never terminated: that aborts the process if a run is going on. */
export const STOP = 'stop'
