import type { z } from 'zod'
import type { InputReader } from './input-reader.ts'
import type { OnnxGraph } from './onnx/onnx-graph.ts'
import type { Port } from './ports.ts'

/** One row of the documentation about what a built-in computes. */
export interface ArithmeticRow {
  /** Case that the row is about: a datatype, or a value of an option. */
  readonly case: string
  /** Function of NumPy, OpenCV or PIL that computes the same. */
  readonly equals: string
  /** Largest difference from it, `none` for equal bytes. */
  readonly tolerance: string
  /** Inputs for which it differs. */
  readonly except?: string
}

/** The facts about a built-in, apart from how it runs. */
interface Declaration<Name extends string, Options extends z.ZodObject> {
  /** The user's name for it, in camelCase. */
  readonly name: Name
  /** One sentence for the documentation. */
  readonly summary: string
  /** Strict, with a description of each field: unit, meaning and default. Every list and text has a bound. */
  readonly options: Options
  /** The inputs by name, with datatypes and dims, for the documentation. */
  readonly inputs: Readonly<Record<string, string>>
  readonly outputs: Readonly<Record<string, string>>
  /**
   * Computes the outputs from what feeds the inputs. Every option has an effect or is refused here.
   *
   * @param inputs - each input is to be taken once; what the user feeds and the built-in does not take is a fault.
   * @throws PortFault for what does not fit.
   */
  signature(options: z.output<Options>, inputs: InputReader): readonly Port[]
  readonly arithmetic: readonly ArithmeticRow[]
  /**
   * Value of all elements of the outputs where an input has no elements and the outputs have some; absent where the operators give the right
   * ones. Those of the runtime that reduce give other shapes, and other numbers than NumPy.
   */
  valueOfNothing?(options: z.output<Options>): number
}

/** A built-in that is a graph of ONNX operators, which ONNX Runtime executes. */
export interface OnnxBuiltin<
  Name extends string = string,
  Options extends z.ZodObject = z.ZodObject,
> extends Declaration<Name, Options> {
  readonly kind: 'onnx'
  /** Writes the operators from the inputs to the outputs. Datatypes and ranks are known; extents may be -1. */
  build(options: z.output<Options>, graph: OnnxGraph): void
}

/** A built-in of which the package `backends` has the code, in a table by name. */
export interface CodeBuiltin<
  Name extends string = string,
  Options extends z.ZodObject = z.ZodObject,
> extends Declaration<Name, Options> {
  readonly kind: 'code'
}

export type Builtin = OnnxBuiltin | CodeBuiltin

/** Declares a built-in of ONNX operators; it infers the type of the options. */
export function onnxBuiltin<const Name extends string, Options extends z.ZodObject>(
  builtin: Omit<OnnxBuiltin<Name, Options>, 'kind'>,
): OnnxBuiltin<Name, Options> {
  return { ...builtin, kind: 'onnx' }
}

/** Declares a built-in whose code is in `backends`; it infers the type of the options. */
export function codeBuiltin<const Name extends string, Options extends z.ZodObject>(
  builtin: Omit<CodeBuiltin<Name, Options>, 'kind'>,
): CodeBuiltin<Name, Options> {
  return { ...builtin, kind: 'code' }
}
