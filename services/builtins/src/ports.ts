import type { Datatype, Shape } from '@tutti/tensor'

/** An input or output of a built-in. -1 in `dims` stands for any extent. */
export interface Port {
  readonly name: string
  readonly datatype: Datatype
  readonly dims: Shape
}

export interface Ports {
  readonly inputs: readonly Port[]
  readonly outputs: readonly Port[]
}

/** A tensor that feeds a built-in, as far as it is known. */
export interface FeedingTensor {
  readonly datatype?: Datatype | undefined
  readonly dims?: Shape | undefined
}

/** One fault of a built-in's options or inputs. */
export interface BuiltinFault {
  /** `name`, an option (`width`, `boxes[2]`), or an input as `inputs.NAME`. */
  readonly path: string
  readonly got: string
  readonly want: string
}
