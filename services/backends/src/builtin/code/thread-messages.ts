import type { CodeBuiltinName } from '@tutti/builtins'
import { type ErrorDetails, type Reason, ServeError, type StatusCode } from '@tutti/errors'
import type { NamedTensor } from '@tutti/tensor'
import type { CodePlace } from './code-step.ts'

/** Data that the thread of a built-in is started with. */
export interface CodeThreadData {
  readonly name: CodeBuiltinName
  readonly options: object
  readonly place: CodePlace
}

/** An error between threads, which keep no classes. */
export interface SentError {
  readonly reason: Reason
  readonly code: StatusCode
  readonly message: string
  readonly details: ErrorDetails
}

/** A message of the thread: one when it is open, and one for each call. */
export type CodeReply = { readonly outputs: readonly NamedTensor[] } | { readonly error: SentError }

export function toSentError(error: unknown): SentError {
  const { reason, code, message, details } = ServeError.from(error)
  return { reason, code, message, details }
}

export function fromSentError({ reason, code, message, details }: SentError): ServeError {
  return new ServeError(reason, message, { code, details })
}

/** Lists the memory that a message can hand over: each once, and none that is shared already. */
export function handedOver(tensors: readonly NamedTensor[]): ArrayBuffer[] {
  const memory = new Set(tensors.map(({ data }) => data.buffer))
  return [...memory].filter((buffer) => buffer instanceof ArrayBuffer)
}

/** Copies a tensor into memory of its own: the memory that it views may belong to others, or be much larger. */
export function ownTensor(tensor: NamedTensor): NamedTensor {
  return { ...tensor, data: new Uint8Array(tensor.data) }
}
