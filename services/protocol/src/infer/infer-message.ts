import type { NamedTensor, Parameter, Parameters } from '@tutti/tensor'

/** Parameters as decoded: undefined where the message carries a key without any value. */
export type WireParameters = ReadonlyMap<string, Parameter | undefined>

/** One tensor of a message, as decoded: its datatype is still any text, its bytes stand elsewhere or in `contents`. */
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
  /** Bytes that its texts and objects take beside the message, at most. */
  readonly madeBytes: number
}

/** A request that a client of ours sends: tensors whole, always encoded as raw_input_contents. */
export interface InferRequestParts {
  readonly modelName: string
  /** '' for the latest ready version. */
  readonly modelVersion?: string
  readonly id?: string
  readonly parameters?: Parameters
  readonly inputs: readonly NamedTensor[]
  /** Empty or absent means all. */
  readonly outputs?: readonly { readonly name: string; readonly parameters?: Parameters }[]
}

/** A response that our server sends, and that our clients make of an answer: tensors whole. */
export interface InferResponseParts {
  readonly modelName: string
  readonly modelVersion: string
  readonly id: string
  readonly parameters: Parameters
  readonly outputs: readonly NamedTensor[]
}

/** One message of a response stream; `errorMessage` is '' unless it reports an error. */
export interface StreamResponseParts {
  readonly errorMessage: string
  readonly response?: InferResponseParts
}

export const NO_PARAMETERS: Parameters = new Map()
