import type { OptionsOf } from '@tutti/builtins'
import { bytesElements, walkBytesTensor } from '@tutti/tensor'
import { inputOf, rowsOf } from './code-inputs.ts'
import type { OpenedCode } from './code-step.ts'
import { LENGTH_BYTES, TextWriter } from './text/text-writer.ts'

const NOTHING = new Uint8Array()

/** Opens `joinTexts`. */
export function openJoinTexts({ separator }: OptionsOf<'joinTexts'>): OpenedCode {
  const between = Buffer.from(separator)
  return {
    run: (inputs) => {
      const texts = inputOf(inputs, 'texts')
      const { shape, count, width } = rowsOf(texts)
      const separators = count * Math.max(width - 1, 0)
      const content = texts.data.byteLength - LENGTH_BYTES * walkBytesTensor(texts.data)
      const bytes = content + separators * between.byteLength + LENGTH_BYTES * count
      const joined = new TextWriter('joinTexts', { bytes })
      const elements = bytesElements(texts.data)
      for (let row = 0; row < count; row += 1) {
        joined.begin()
        for (let i = 0; i < width; i += 1) {
          if (i > 0) joined.append(between)
          joined.append(elements.next().value ?? NOTHING)
        }
      }
      return [{ name: 'text', datatype: 'BYTES', shape, data: joined.finish() }]
    },
  }
}
