import type { OptionsOf } from '@tutti/builtins'
import { ServeError } from '@tutti/errors'
import { decodeBytesTensor } from '@tutti/tensor'
import { inputOf, misfit } from '../code-inputs.ts'
import type { CodePlace, OpenedCode } from '../code-step.ts'
import { readTexts } from './text-lines.ts'

/** Opens `labelIndex`. */
export async function openLabelIndex(
  { labels: list, file, unknown }: OptionsOf<'labelIndex'>,
  place: CodePlace,
): Promise<OpenedCode> {
  const texts = await readTexts(place, { list, file })
  const indexes = new Map(texts.map((text, i) => [keyOf(text), i]))
  if (indexes.size < texts.length) {
    const text = `labelIndex: ${texts.length - indexes.size} of ${texts.length} labels are there twice, want each once`
    throw new ServeError('MODEL_LOAD_FAILED', text)
  }
  return {
    run: (inputs) => {
      const labels = inputOf(inputs, 'labels')
      const found = decodeBytesTensor(labels.data).map((bytes, i) => {
        const index = indexes.get(keyOf(bytes)) ?? unknown
        if (index !== undefined) return BigInt(index)
        throw misfit('labels', `a text at ${i} that is no label`, `one of ${indexes.size} labels`)
      })
      const data = new Uint8Array(BigInt64Array.from(found).buffer)
      return [{ name: 'indexes', datatype: 'INT64', shape: labels.shape, data }]
    },
  }
}

/** Bytes as a text that has one character for each: labels of a request need be no UTF-8. */
function keyOf({ buffer, byteOffset, byteLength }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString('latin1')
}
