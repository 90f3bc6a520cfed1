import type { NamedTensor, Parameter, Parameters } from '@tutti/tensor'

/** Parameters as decoded. The value is undefined where the message has a key without a value. */
export type WireParameters = ReadonlyMap<string, Parameter | undefined>

/**
 * One tensor of a message, as decoded. Its datatype may be any text. Its bytes are in `contents` or in the message's raw
 * contents.
 */
export interface TensorMessage {
  readonly name: string
  readonly datatype: string
  readonly shape: readonly number[]
  readonly parameters: WireParameters
  /** An encoded InferTensorContents, for `readContents`; absent if the tensor has none. A view. */
  readonly contents?: Uint8Array
}

export interface RequestedOutputMessage {
  readonly name: string
  readonly parameters: WireParameters
}

/** A decoded ModelInferRequest. */
export interface InferRequestMessage {
  readonly modelName: string
  readonly modelVersion: string
  readonly id: string
  readonly parameters: WireParameters
  readonly inputs: readonly TensorMessage[]
  readonly outputs: readonly RequestedOutputMessage[]
  /** Views into the message. */
  readonly rawInputContents: readonly Uint8Array[]
  /** Upper bound on the bytes that the decoded texts and objects take besides the message. */
  readonly madeBytes: number
}

/** Request that our client sends. Its tensors are always encoded as raw_input_contents. */
export interface OutgoingRequest {
  readonly modelName: string
  /** '' for the latest ready version. */
  readonly modelVersion?: string
  readonly id?: string
  readonly parameters?: Parameters
  readonly inputs: readonly NamedTensor[]
  /** Empty or absent means all. */
  readonly outputs?: readonly { readonly name: string; readonly parameters?: Parameters }[]
}

/** Response that our server sends, or that our client has decoded. */
export interface InferResponse {
  readonly modelName: string
  readonly modelVersion: string
  readonly id: string
  readonly parameters: Parameters
  readonly outputs: readonly NamedTensor[]
}

/** One message of a response stream; `errorMessage` is '' unless it reports an error. */
export interface StreamResponse {
  readonly errorMessage: string
  readonly response?: InferResponse
}

export const NO_PARAMETERS: Parameters = new Map()
