import type { NamedTensor } from '@tutti/tensor'
import t from 'tap'
import { checkEngineMemory } from './engine-memory.ts'

const MEBIBYTE = 2 ** 20

function inputs(...sizes: readonly number[]): readonly NamedTensor[] {
  return sizes.map((size, i) => {
    return { name: `x${i}`, datatype: 'UINT8', shape: [size], data: new Uint8Array(size) }
  })
}

await t.test('a large step begins only with four times its inputs free', (t) => {
  const free = 100 * MEBIBYTE
  checkEngineMemory(inputs(25 * MEBIBYTE), () => free)
  checkEngineMemory(inputs(13 * MEBIBYTE, 12 * MEBIBYTE), () => free)
  t.throws(() => checkEngineMemory(inputs(13 * MEBIBYTE, 13 * MEBIBYTE), () => free), {
    reason: 'OVERLOADED',
    code: 'RESOURCE_EXHAUSTED',
    message:
      /inputs of 27262976 bytes may take 109051904 more, and the process may take 104857600 more/,
  })
  t.end()
})

await t.test('small steps are not looked at, and this process has memory for a large one', (t) => {
  checkEngineMemory(inputs(15 * MEBIBYTE), () => t.fail('it looks') as never)
  t.doesNotThrow(() => checkEngineMemory(inputs(16 * MEBIBYTE)))
  t.end()
})
