import type { OptionsOf } from '@tutti/builtins'
import { encodeBytesTensor } from '@tutti/tensor'
import { inputOf, integersOf, misfit } from '../code-inputs.ts'
import type { CodePlace, OpenedCode } from '../code-step.ts'
import { readTexts } from './text-lines.ts'

/** Opens `labelLookup`. */
export async function openLabelLookup(
  { labels: list, file }: OptionsOf<'labelLookup'>,
  place: CodePlace,
): Promise<OpenedCode> {
  const labels = await readTexts(place, { list, file })
  return {
    run: (inputs) => {
      const indexes = inputOf(inputs, 'indexes')
      const found = Array.from(integersOf(indexes), (index) => {
        const label = labels[index]
        if (label !== undefined) return label
        throw misfit('indexes', `index ${index}`, `0 to ${labels.length - 1}`)
      })
      const data = encodeBytesTensor(found)
      return [{ name: 'labels', datatype: 'BYTES', shape: indexes.shape, data }]
    },
  }
}
