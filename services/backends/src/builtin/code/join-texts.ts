import type { OptionsOf } from '@tutti/builtins'
import { bug } from '@tutti/errors'
import { decodeBytesTensor, encodeBytesTensor } from '@tutti/tensor'
import type { OpenedCode } from './code-step.ts'

/** Opens `joinTexts`. */
export function openJoinTexts({ separator }: OptionsOf<'joinTexts'>): OpenedCode {
  const between = Buffer.from(separator)
  return {
    run: (inputs) => {
      const texts = inputs.get('texts') ?? missing()
      const elements = decodeBytesTensor(texts.data)
      const width = texts.shape.at(-1) ?? 0
      const shape = texts.shape.length === 1 ? [1] : texts.shape.slice(0, -1)
      const rows = shape.reduce((product, extent) => product * extent, 1)
      const joined = Array.from({ length: rows }, (_, row) => {
        const parts = elements.slice(row * width, (row + 1) * width)
        return Buffer.concat(parts.flatMap((part, i) => (i === 0 ? [part] : [between, part])))
      })
      return [{ name: 'text', datatype: 'BYTES', shape, data: encodeBytesTensor(joined) }]
    },
  }
}

function missing(): never {
  throw bug('joinTexts has no input texts')
}
