import type { OptionsOf } from '@tutti/builtins'
import type { TensorValue } from '@tutti/tensor'
import { inputOf, integersOf, integerText, misfit } from '../code-inputs.ts'
import type { CodePlace, OpenedCode } from '../code-step.ts'
import { readTexts } from './text-lines.ts'
import { LENGTH_BYTES, TextWriter } from './text-writer.ts'

const NOTHING = new Uint8Array()

/** Opens `labelLookup`. */
export async function openLabelLookup(
  { labels: list, file }: OptionsOf<'labelLookup'>,
  place: CodePlace,
): Promise<OpenedCode> {
  const labels = await readTexts(place, { list, file })
  return {
    run: (inputs) => {
      const indexes = inputOf(inputs, 'indexes')
      const numbers = integersOf(indexes)
      let bytes = LENGTH_BYTES * numbers.length
      for (let i = 0; i < numbers.length; i += 1) {
        const label = labels[numbers[i] ?? 0] ?? refuseIndex(indexes, i, labels.length)
        bytes += label.byteLength
      }
      const found = new TextWriter('labelLookup', { bytes })
      for (const index of numbers) {
        found.begin()
        found.append(labels[index] ?? NOTHING)
      }
      return [{ name: 'labels', datatype: 'BYTES', shape: indexes.shape, data: found.finish() }]
    },
  }
}

/** @throws ServeError INVALID_REQUEST for an index that no text has. */
export function refuseIndex(indexes: TensorValue, at: number, count: number): never {
  throw misfit('indexes', `index ${integerText(indexes, at)}`, `0 to ${count - 1}`)
}
