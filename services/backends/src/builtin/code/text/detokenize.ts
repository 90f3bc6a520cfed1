import { MAX_ROW_LENGTH, type OptionsOf } from '@tutti/builtins'
import { inputOf, integersOf, misfit, rowsOf } from '../code-inputs.ts'
import type { CodePlace, OpenedCode } from '../code-step.ts'
import { type OpenedTokenizer, openTokenizer } from './open-tokenizer.ts'
import { TextWriter } from './text-writer.ts'

/** Opens `detokenize`. */
export async function openDetokenize(
  { file, skipSpecialTokens }: OptionsOf<'detokenize'>,
  place: CodePlace,
): Promise<OpenedCode> {
  const tokenizer = await openTokenizer(place, file)
  return {
    run: (inputs) => {
      const ids = inputOf(inputs, 'ids')
      const { shape, count, width } = rowsOf(ids)
      const all = integersOf(ids)
      const texts = new TextWriter('detokenize')
      for (let row = 0; row < count; row += 1) {
        const tokens = [...all.subarray(row * width, (row + 1) * width)]
        checkLength(tokenizer, tokens, row)
        texts.begin()
        texts.append(Buffer.from(tokenizer.decode(tokens, { skipSpecials: skipSpecialTokens })))
      }
      return [{ name: 'texts', datatype: 'BYTES', shape, data: texts.finish() }]
    },
  }
}

/** @throws ServeError INVALID_REQUEST */
function checkLength(tokenizer: OpenedTokenizer, tokens: readonly number[], row: number): void {
  let length = 0
  for (const id of tokens) length += tokenizer.lengthOf(id)
  if (length <= MAX_ROW_LENGTH) return
  const got = `tokens of ${length} characters in text ${row}`
  throw misfit('ids', got, `at most ${MAX_ROW_LENGTH}`)
}
