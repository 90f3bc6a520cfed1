import type { StepTensor, TensorDefinition } from './find-tensor-faults.ts'

/** Where the parts of a graph stand in what its author wrote, and what they are called there. */
export interface Words {
  readonly maxBatchSize: string
  /** Field of a step that says what feeds the model's inputs. */
  readonly inputMap: string
  /** Words for the output that is wanted of a step none of whose outputs is named. */
  readonly wantedOutput: string
  /** How the text begins that a served name is not known. */
  readonly noModel: string
  /** Path of a step. */
  step(index: number): string
  /** Words for a step in the list of those that wait for one another. */
  stepName(index: number): string
  /** Path of the field that names the model of a step. */
  model(index: number): string
  /** Path of the name within that field. */
  modelName(index: number): string
  version(index: number): string
  /** Path of the field that feeds an input of a step's model, or that names an output of it. */
  tensor(at: StepTensor): string
  /** Path of an input of the ensemble. */
  input(index: number): string
  /** Path of an output of the ensemble. */
  output(index: number): string
  /** Words for the place that named a tensor first. */
  definition(tensor: string, first: TensorDefinition): string
  /** Hint behind the text of a tensor that the model lacks: the nearest of `names`, those that it has, or a swap. */
  portHint(at: StepTensor, names: readonly string[]): string
}
