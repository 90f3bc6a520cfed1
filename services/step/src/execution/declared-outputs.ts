import { type ModelConfig, modelMetadata, type TensorMetadata } from '@tutti/model-config'
import { formatShape, type NamedTensor } from '@tutti/tensor'

/** An answer that is not as its model's configuration says. */
export interface OutputDifference {
  readonly output: string
  /** Datatype and shape. */
  readonly got: string
  readonly want: string
}

/**
 * The outputs that a model version may return. Triton passes on whatever datatype and shape they come with, and so do we: that they
 * differ from the configuration is told once for each output.
 */
export class DeclaredOutputs {
  readonly #declared: ReadonlyMap<string, TensorMetadata>
  readonly #tell: (difference: OutputDifference) => void
  readonly #told = new Set<string>()

  constructor(config: ModelConfig, tell: (difference: OutputDifference) => void) {
    this.#declared = new Map(
      modelMetadata(config, []).outputs.map((output) => [output.name, output]),
    )
    this.#tell = tell
  }

  has(name: string): boolean {
    return this.#declared.has(name)
  }

  /** @param outputs - as clients see them. */
  compare(outputs: readonly NamedTensor[]): void {
    for (const { name, datatype, shape } of outputs) {
      const declared = this.#declared.get(name)
      if (declared === undefined) continue
      if (datatype === declared.datatype && fits(shape, declared.shape)) continue
      if (this.#told.has(name)) continue
      this.#told.add(name)
      const got = `${datatype} ${formatShape(shape)}`
      const want = `${declared.datatype} ${formatShape(declared.shape)}`
      this.#tell({ output: name, got, want })
    }
  }
}

function fits(shape: readonly number[], declared: readonly number[]): boolean {
  if (shape.length !== declared.length) return false
  for (let i = 0; i < shape.length; i += 1) {
    if (declared[i] !== -1 && declared[i] !== shape[i]) return false
  }
  return true
}
