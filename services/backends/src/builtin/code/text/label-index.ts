import type { OptionsOf } from '@tutti/builtins'
import { ServeError } from '@tutti/errors'
import { walkBytesTensor } from '@tutti/tensor'
import { inputOf, misfit, outputOf } from '../code-inputs.ts'
import type { CodePlace, OpenedCode } from '../code-step.ts'
import { readTexts } from './text-lines.ts'

/** Opens `labelIndex`. */
export async function openLabelIndex(
  { labels: list, file, unknown }: OptionsOf<'labelIndex'>,
  place: CodePlace,
): Promise<OpenedCode> {
  const texts = await readTexts(place, { list, file })
  const indexes = new Map(texts.map((text, i) => [keyOf(text), i]))
  const longest = texts.reduce((most, { byteLength }) => Math.max(most, byteLength), 0)
  if (indexes.size < texts.length) {
    const text = `labelIndex: ${texts.length - indexes.size} of ${texts.length} labels are there twice, want each once`
    throw new ServeError('MODEL_LOAD_FAILED', text)
  }
  const find = (text: Uint8Array): number | undefined =>
    text.byteLength > longest ? undefined : indexes.get(keyOf(text))
  return {
    run: (inputs) => {
      const { data, shape } = inputOf(inputs, 'labels')
      const found = new Int32Array(walkBytesTensor(data))
      let at = 0
      walkBytesTensor(data, (begin, end) => {
        const index = find(data.subarray(begin, end)) ?? unknown
        if (index === undefined) {
          const want = `one of ${indexes.size} labels`
          throw misfit('labels', `a text at ${at} that is no label`, want)
        }
        found[at] = index
        at += 1
      })
      return [outputOf('indexes', shape, found)]
    },
  }
}

/** Bytes as a text that has one character for each: labels of a request need be no UTF-8. */
function keyOf({ buffer, byteOffset, byteLength }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString('latin1')
}
