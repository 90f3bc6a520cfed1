import type { OptionsOf } from '@tutti/builtins'
import { ServeError } from '@tutti/errors'
import type { TensorValue } from '@tutti/tensor'
import { floatsOf, inputOf, integersOf, outputOf } from '../code-inputs.ts'
import type { CodePlace, OpenedCode } from '../code-step.ts'
import { refuseIndex } from './label-lookup.ts'
import { readTexts } from './text-lines.ts'
import { LENGTH_BYTES, TextWriter } from './text-writer.ts'

const NOTHING = new Uint8Array()

/** Opens `ctcGreedy`. */
export async function openCtcGreedy(
  { alphabet, file, blank }: OptionsOf<'ctcGreedy'>,
  place: CodePlace,
): Promise<OpenedCode> {
  const letters = [...(await readTexts(place, { list: alphabet, file }))]
  if (blank > letters.length) {
    const text = `ctcGreedy: blank ${blank}, want at most ${letters.length}, the number of lines in ${file}`
    throw new ServeError('MODEL_LOAD_FAILED', text)
  }
  letters.splice(blank, 0, NOTHING)
  return {
    run: (inputs) => {
      const indexes = inputOf(inputs, 'indexes')
      const scores = inputs.get('scores')
      const { texts, means } = decode(indexes, scores, { letters, blank })
      const shape = [indexes.shape[0] ?? 0]
      const text = { name: 'text', datatype: 'BYTES', shape, data: texts } as const
      return means === undefined ? [text] : [text, outputOf('score', shape, means)]
    },
  }
}

interface Decoded {
  /** Elements of a BYTES tensor. */
  readonly texts: Uint8Array
  /** Mean of the scores of the letters of each; 0 for no letter. */
  readonly means: Float32Array<ArrayBuffer> | undefined
}

function decode(
  tensor: TensorValue,
  scores: TensorValue | undefined,
  { letters, blank }: { readonly letters: readonly Uint8Array[]; readonly blank: number },
): Decoded {
  const [count = 0, steps = 0] = tensor.shape
  const indexes = integersOf(tensor)
  const values = scores === undefined ? undefined : floatsOf(scores)
  const row = { indexes, steps, blank }
  const bytes = countBytes(row, count, (index, at) => {
    return (letters[index] ?? refuseIndex(tensor, at, letters.length)).byteLength
  })
  const means = values === undefined ? undefined : new Float32Array(count)
  const texts = new TextWriter('ctcGreedy', { bytes, beside: means?.byteLength ?? 0 })
  for (let i = 0; i < count; i += 1) {
    let kept = 0
    let sum = 0
    texts.begin()
    eachLetter(row, i, (index, at) => {
      texts.append(letters[index] ?? NOTHING)
      kept += 1
      sum += values?.[at] ?? 0
    })
    if (means !== undefined && kept > 0) means[i] = sum / kept
  }
  return { texts: texts.finish(), means }
}

/** The steps of all rows. */
interface Steps {
  readonly indexes: Int32Array | Float64Array
  readonly steps: number
  readonly blank: number
}

/** Counts the bytes of the texts with their lengths. */
function countBytes(
  steps: Steps,
  count: number,
  bytesOf: (index: number, at: number) => number,
): number {
  let bytes = LENGTH_BYTES * count
  for (let row = 0; row < count; row += 1) {
    eachLetter(steps, row, (index, at) => {
      bytes += bytesOf(index, at)
    })
  }
  return bytes
}

/** Visits the steps of a row that make a letter: no blank, and none that repeats the step before. */
function eachLetter(o: Steps, row: number, visit: (index: number, at: number) => void): void {
  const first = row * o.steps
  for (let at = first; at < first + o.steps; at += 1) {
    const index = o.indexes[at] ?? 0
    const isRepeated = at > first && o.indexes[at - 1] === index
    if (index !== o.blank && !isRepeated) visit(index, at)
  }
}
