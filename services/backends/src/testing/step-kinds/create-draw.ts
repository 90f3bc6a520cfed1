import { decodeBytesTensor } from '@tutti/tensor'
import type { Test } from 'tap'
import type { RunBuiltin } from '../builtin-steps.ts'
import type { Dice } from '../dice.ts'
import type { Draw } from './step-kind.ts'

const WORDS =
  'a model serves tensors to clients we are running unbelievable 12345 requests naïve 你好'.split(
    ' ',
  )
const MAX_WORDS = 12

/** Draws inputs of chains; pictures are written by the built-ins themselves. */
export function createDraw(t: Test, run: RunBuiltin, dice: Dice): Draw {
  return {
    dice,
    text: () => Array.from({ length: dice.int(0, MAX_WORDS) }, () => dice.pick(...WORDS)).join(' '),
    // Blots of one colour each, which a JPEG keeps well.
    picture: async (height, width, format = 'png') => {
      const few = dice.tensor('image', 'UINT8', [4, 5, 3])
      const [image] = await run(t, { name: 'resize', width, height, method: 'bicubic' }, [few])
      if (image === undefined) throw new Error('resize has no output')
      const [file] = await run(t, { name: 'imageEncode', format }, [image])
      return decodeBytesTensor(file?.data ?? new Uint8Array())[0] ?? new Uint8Array()
    },
  }
}
