import type { Datatype, NamedTensor } from '@tutti/tensor'
import { encodeBytesTensor } from '@tutti/tensor'
import type { Dice } from '../dice.ts'
import type { Tolerance } from '../random-tensors.ts'

/** A tensor that a step always gets, as an Ensemble writes it. */
export interface ChainConstant {
  readonly datatype: Datatype
  readonly shape?: readonly number[]
  readonly value: readonly number[]
}

/** A step of a chain, in the words of an Ensemble. One for each item has a chain of its own in place of a built-in. */
export interface ChainStep {
  readonly name: string
  readonly builtin?: Readonly<Record<string, unknown>> & { readonly name: string }
  /** Input: `STEP.OUTPUT`, or the name of an input of the chain. */
  readonly inputMap: Readonly<Record<string, string>>
  readonly constants?: Readonly<Record<string, ChainConstant>>
  readonly forEach?: {
    readonly items: Readonly<Record<string, string>>
    /** Inputs of an item's chain as an Ensemble declares them: those of `items`, and of `inputMap`. */
    readonly inputs: Readonly<Record<string, string>>
    readonly steps: readonly ChainStep[]
    /** Output of the step: where an item's chain has it. */
    readonly outputs: Readonly<Record<string, string>>
  }
}

/** Draws inputs of a chain. */
export interface Draw {
  readonly dice: Dice
  /** Writes a picture of random soft blots as a file. */
  readonly picture: (height: number, width: number, format?: 'jpeg' | 'png') => Promise<Uint8Array>
  readonly text: () => string
}

/** A chain of built-ins that computes what a step does in Python. */
export interface StepChain {
  readonly steps: readonly ChainStep[]
  /** Where the outputs are, in the order of the row. */
  readonly outputs: readonly string[]
  /** Outputs of networks that the step calls, and that are steps of their own in an Ensemble: inputs after those of the row. */
  readonly networks?: readonly string[]
  readonly draw: (draw: Draw) => Promise<readonly NamedTensor[]> | readonly NamedTensor[]
  /** The step in Python, from its row: sets `out`, a tuple of the outputs. It sees the inputs by their names. */
  readonly python: string
  readonly tolerance?: Tolerance
  /** Random inputs that are tried; fewer where they are large. Default 3. */
  readonly cases?: number
}

/** Python steps of public ensembles that do the same. */
export interface StepKind {
  /** Numbers of the steps in the list. */
  readonly rows: readonly number[]
  /** Inputs and outputs as their configurations have them. */
  readonly takes: string
  readonly makes: string
  /** Says in a few words what it does. */
  readonly does: string
  /** Whether the row says too little, and `does` is one thing that fits. */
  readonly isReading?: true
  /** The chain, or why there is none. */
  readonly expressed: StepChain | string
}

/** Ports as a row has them; none if their configuration has none. */
export function portsOf(
  text: string,
): { readonly datatype: string; readonly dims: readonly number[] }[] {
  return [...text.matchAll(/(\w+)\[([^\]]*)\]/g)].map(([, type = '', dims = '']) => {
    return { datatype: type === 'STRING' ? 'BYTES' : type, dims: dims.split(',').map(Number) }
  })
}

/** A tensor of texts or of files. */
export function bytesTensor(
  name: string,
  shape: readonly number[],
  elements: readonly (string | Uint8Array)[],
): NamedTensor {
  const bytes = elements.map((one) => (typeof one === 'string' ? Buffer.from(one) : one))
  return { name, datatype: 'BYTES', shape, data: encodeBytesTensor(bytes) }
}

/** A step of one built-in whose inputs are few. */
export function step(
  name: string,
  builtin: string,
  inputMap: Readonly<Record<string, string>>,
  options: Readonly<Record<string, unknown>> = {},
  constants?: ChainStep['constants'],
): ChainStep {
  const base = { name, builtin: { ...options, name: builtin }, inputMap }
  return constants === undefined ? base : { ...base, constants }
}
