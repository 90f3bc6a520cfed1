import type { OptionsOf } from '@tutti/builtins'
import { encodeBytesTensor } from '@tutti/tensor'
import { inputOf, integersOf } from '../code-inputs.ts'
import type { CodePlace, OpenedCode } from '../code-step.ts'
import { openTokenizer } from './open-tokenizer.ts'

/** Opens `detokenize`. */
export async function openDetokenize(
  { file, skipSpecialTokens }: OptionsOf<'detokenize'>,
  place: CodePlace,
): Promise<OpenedCode> {
  const tokenizer = await openTokenizer(place, file)
  return {
    run: (inputs) => {
      const ids = inputOf(inputs, 'ids')
      const all = [...integersOf(ids)]
      const length = ids.shape.at(-1) ?? 0
      const count = ids.shape.slice(0, -1).reduce((product, extent) => product * extent, 1)
      const texts = Array.from({ length: count }, (_, i) => {
        const row = all.slice(i * length, (i + 1) * length)
        return Buffer.from(tokenizer.decode(row, { skipSpecials: skipSpecialTokens }))
      })
      const shape = ids.shape.length === 1 ? [1] : ids.shape.slice(0, -1)
      return [{ name: 'texts', datatype: 'BYTES', shape, data: encodeBytesTensor(texts) }]
    },
  }
}
