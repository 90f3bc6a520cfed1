import type { NamedTensor, Shape } from '@tutti/tensor'
import type { Test } from 'tap'
import type { RunBuiltin } from './builtin-steps.ts'
import { createDice, type Dice, times } from './dice.ts'
import type { Evaluate } from './numpy-reference.ts'
import { equalTensors, type Tolerance } from './random-tensors.ts'

/** A random case of a built-in, and the expression of Python that has the same outputs. */
export interface NumpyCase {
  readonly options?: Readonly<Record<string, unknown>>
  readonly inputs: readonly NamedTensor[]
  /** Sees each input as an array; a tuple has the outputs in their order. */
  readonly expression: string
  /** Statements before it. */
  readonly setup?: string
  readonly tolerance?: Tolerance
}

export interface NumpyTests {
  readonly run: RunBuiltin
  readonly numpy: Evaluate
}

/** Compares a built-in with Python on random cases, each with all dims known, and again with none known. */
export async function compareWithNumpy(
  t: Test,
  { run, numpy }: NumpyTests,
  name: string,
  draw: (dice: Dice, count: number) => NumpyCase,
  count = 20,
): Promise<void> {
  const dice = createDice()
  for (const i of times(count)) {
    const { options, inputs, expression, setup, tolerance } = draw(dice, i)
    const given = { name, ...options }
    const shapes = inputs.map(
      ({ name: input, datatype, shape }) => `${input} ${datatype}[${shape.join(',')}]`,
    )
    const text = `${JSON.stringify(given)} of ${shapes.join(', ')}`
    const wanted = await numpy(expression, inputs, setup)
    const open: [string, Shape][] = inputs.map(({ name: input, shape }) => [
      input,
      shape.map(() => -1),
    ])
    for (const declared of [{}, Object.fromEntries(open)]) {
      const outputs = await run(t, given, inputs, declared)
      if (outputs.length !== wanted.length) t.equal(outputs.length, wanted.length, text)
      outputs.forEach((got, at) => equalTensors(t, got, wanted[at], text, tolerance))
    }
  }
}
