import type { OptionsOf } from '@tutti/builtins'
import { encodeBytesTensor, type TensorValue } from '@tutti/tensor'
import { floatsOf, inputOf, integersOf, misfit } from '../code-inputs.ts'
import type { CodePlace, OpenedCode } from '../code-step.ts'
import { readTexts } from './text-lines.ts'

/** Opens `ctcGreedy`. */
export async function openCtcGreedy(
  { alphabet, file, blank }: OptionsOf<'ctcGreedy'>,
  place: CodePlace,
): Promise<OpenedCode> {
  const letters = [...(await readTexts(place, { list: alphabet, file }))]
  letters.splice(blank, 0, new Uint8Array())
  return {
    run: (inputs) => {
      const indexes = inputOf(inputs, 'indexes')
      const scores = inputs.get('scores')
      const rows = decode(indexes, scores, { letters, blank })
      const shape = [rows.length]
      const texts = encodeBytesTensor(rows.map(({ text }) => text))
      const text = { name: 'text', datatype: 'BYTES', shape, data: texts } as const
      if (scores === undefined) return [text]
      const means = Float32Array.from(rows, ({ mean }) => mean)
      const data = new Uint8Array(means.buffer)
      return [text, { name: 'score', datatype: 'FP32', shape, data }]
    },
  }
}

interface Decoded {
  readonly text: Uint8Array
  /** Mean of the scores of the letters; 0 for no letter. */
  readonly mean: number
}

function decode(
  { shape, ...rest }: TensorValue,
  scores: TensorValue | undefined,
  { letters, blank }: { readonly letters: readonly Uint8Array[]; readonly blank: number },
): readonly Decoded[] {
  const [count = 0, steps = 0] = shape
  const indexes = integersOf({ shape, ...rest })
  const values = scores === undefined ? undefined : floatsOf(scores)
  if (values !== undefined && values.length !== indexes.length) {
    throw misfit('scores', `${values.length} numbers`, `${indexes.length}, as many as indexes`)
  }
  return Array.from({ length: count }, (_, row) => {
    const kept: number[] = []
    for (let at = row * steps; at < (row + 1) * steps; at += 1) {
      const index = indexes[at] ?? 0
      const isRepeated = at > row * steps && indexes[at - 1] === index
      if (index !== blank && !isRepeated) kept.push(at)
    }
    const text = kept.map((at) => letterOf(letters, indexes[at] ?? 0))
    const sum = kept.reduce((total, at) => total + (values?.[at] ?? 0), 0)
    return { text: Buffer.concat(text), mean: kept.length === 0 ? 0 : sum / kept.length }
  })
}

function letterOf(letters: readonly Uint8Array[], index: number): Uint8Array {
  const letter = letters[index]
  if (letter !== undefined) return letter
  throw misfit('indexes', `index ${index}`, `0 to ${letters.length - 1}`)
}
