import { encodeBytesTensor } from '@tutti/tensor'
import t from 'tap'
import { openBuiltins } from '../../testing/builtin-steps.ts'
import { CodeThread } from './code-thread.ts'

const texts = (shape: readonly number[], ...elements: readonly string[]) => ({
  name: 'texts',
  datatype: 'BYTES' as const,
  shape,
  data: encodeBytesTensor(elements.map((text) => Buffer.from(text))),
})

await t.test('a built-in of code runs on a thread, and texts are joined', async (t) => {
  const run = await openBuiltins(t)
  for (const { shape, elements, want, dims } of [
    { shape: [3], elements: ['a', '', 'ü'], want: ['a--ü'], dims: [1] },
    { shape: [2, 2], elements: ['a', 'b', 'c', 'd'], want: ['a-b', 'c-d'], dims: [2] },
    { shape: [0], elements: [], want: [''], dims: [1] },
    { shape: [2, 0], elements: [], want: ['', ''], dims: [2] },
    { shape: [0, 2], elements: [], want: [], dims: [0] },
  ]) {
    const given = { name: 'joinTexts', separator: '-' }
    const [output] = await run(t, given, [texts(shape, ...elements)])
    t.same(output?.shape, dims)
    t.same([...(output?.data ?? [])], [...encodeBytesTensor(want.map((text) => Buffer.from(text)))])
  }
})

await t.test('an error of the code comes back with its reason', async (t) => {
  const run = await openBuiltins(t)
  const cut = { ...texts([2], 'a'), shape: [1], data: Buffer.from([9, 0, 0, 0, 1]) }
  await t.rejects(run(t, { name: 'joinTexts' }, [cut]), {
    reason: 'INVALID_TENSOR_DATA',
    message: /^incomplete string data/,
  })
  await t.rejects(run(t, { name: 'joinTexts' }, []), /inputs.texts/)
})

await t.test('a thread that ended is started again by the next call', async (t) => {
  const data = {
    name: 'joinTexts',
    options: { separator: ' ' },
    place: { directories: ['/'] },
  } as const
  const thread = await CodeThread.open(data)
  t.teardown(() => thread.close())
  const inputs = new Map([['texts', texts([2], 'a', 'b')]])
  const [before] = await thread.run(inputs)
  await thread.close()
  const [after] = await thread.run(inputs)
  t.same(after, before)
})
