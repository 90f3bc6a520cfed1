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

/** A tokenizer whose regular expression takes as good as for ever over many letters. */
const ENDLESS = {
  version: '1.0',
  truncation: null,
  padding: null,
  added_tokens: [],
  normalizer: null,
  pre_tokenizer: {
    type: 'Split',
    pattern: { Regex: '(a+)+b' },
    behavior: 'Isolated',
    invert: false,
  },
  post_processor: null,
  decoder: null,
  model: { type: 'WordLevel', vocab: { '[UNK]': 0, a: 1 }, unk_token: '[UNK]' },
}
const TOKENIZE = {
  file: 'tokenizer.json',
  padding: 'file',
  specialTokens: false,
  maxTextBytes: 2 ** 22,
  datatype: 'INT64',
} as const

await t.test('a caller who leaves gives the thread to those who wait', async (t) => {
  const directory = t.testdir({ 'tokenizer.json': JSON.stringify(ENDLESS) })
  const place = { directories: [directory] }
  const forEver = { maxCallMs: 2 ** 31 - 1 }
  const thread = await CodeThread.open({ name: 'tokenize', options: TOKENIZE, place }, forEver)
  t.teardown(() => thread.close())
  const endless = new Map([['texts', texts([1], 'a'.repeat(60))]])
  for (const leavesBefore of [false, true]) {
    const leaving = new AbortController()
    if (leavesBefore) leaving.abort()
    const call = thread.run(endless, leaving.signal)
    leaving.abort()
    await t.rejects(call, { reason: 'CANCELLED', message: 'no caller waits for the request' })
    const staying = new AbortController()
    const [ids] = await thread.run(new Map([['texts', texts([1], 'a')]]), staying.signal)
    t.same(ids?.shape, [1, 1])
  }
})

await t.test('a call that is as good as over ends by itself when its caller leaves', async (t) => {
  const data = {
    name: 'joinTexts',
    options: { separator: ' ' },
    place: { directories: [] },
  } as const
  const thread = await CodeThread.open(data)
  t.teardown(() => thread.close())
  const leaving = new AbortController()
  const call = thread.run(new Map([['texts', texts([2], 'a', 'b')]]), leaving.signal)
  leaving.abort()
  t.same((await call)[0]?.shape, [1])
})

await t.test(
  'a request that takes too much memory ends, and neither process nor step do',
  async (t) => {
    const words = { ...ENDLESS, pre_tokenizer: { type: 'Whitespace' } }
    const directory = t.testdir({ 'tokenizer.json': JSON.stringify(words) })
    const place = { directories: [directory] }
    const small = { maxHeapMib: 32 }
    const thread = await CodeThread.open({ name: 'tokenize', options: TOKENIZE, place }, small)
    t.teardown(() => thread.close())
    await t.rejects(thread.run(new Map([['texts', texts([1], 'a '.repeat(2 ** 20))]])), {
      reason: 'MESSAGE_TOO_LARGE',
      message: 'built-in tokenize: a request took more than 32 MiB of memory, and was ended',
    })
    const [ids] = await thread.run(new Map([['texts', texts([1], 'a')]]))
    t.same(ids?.shape, [1, 1])
  },
)
