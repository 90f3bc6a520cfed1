import type { CancelSignal } from '@tutti/errors'
import type { NamedTensor, TensorValue } from '@tutti/tensor'

/** The place of a built-in step's files. */
export interface CodePlace {
  /** Absolute paths of the folders in which files that options name are looked for, one after the other. */
  readonly directories: readonly string[]
}

/** A built-in of code, opened with its options. */
export interface OpenedCode {
  /**
   * Computes the outputs of one request.
   *
   * @param inputs - by name, of the datatypes and dims of the signature; viewed until it resolves.
   * @param signal - aborts when no caller waits; a call need not end for it.
   * @returns the outputs of the signature, in memory of their own.
   * @throws ServeError INVALID_TENSOR_DATA and the like, which names the input.
   */
  run(
    inputs: ReadonlyMap<string, TensorValue>,
    signal?: CancelSignal,
  ): readonly NamedTensor[] | Promise<readonly NamedTensor[]>
}
