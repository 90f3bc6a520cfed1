import type { Datatype, Shape } from '@tutti/tensor'
import type { ModelConfig } from '../model/model-config.ts'

/** One declared input or output. `dims` is the full shape, which begins with -1 for the batch if the model batches. */
export interface TensorSpec {
  readonly name: string
  readonly datatype: Datatype
  readonly dims: Shape
}

/** The tensors that an engine read from the model itself, before any configuration. */
export interface ModelSignature {
  readonly inputs: readonly TensorSpec[]
  readonly outputs: readonly TensorSpec[]
}

/** One model version on disk, ready to be loaded. The repository package makes it, engines read it. */
export interface ModelVersionSource {
  readonly name: string
  /** The number of the version directory. */
  readonly version: number
  /** Absolute path of the model's directory (holds config.pbtxt and the version directories). */
  readonly modelDirectory: string
  /** Absolute path of the version directory. */
  readonly versionDirectory: string
  /** SHA-256, hex, over the normalised config and the artifacts: the revision (invariant 4). */
  readonly revision: string
  /** Configuration, completed and normalised. */
  readonly config: ModelConfig
}
