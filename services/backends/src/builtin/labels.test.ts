import { execFileSync } from 'node:child_process'
import { symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { NamedTensor } from '@tutti/tensor'
import t from 'tap'
import { openBuiltins, Refused } from '../testing/builtin-steps.ts'
import { createDice, times } from '../testing/dice.ts'
import { numbersOf, numberTensor, textsOf as readTexts } from '../testing/random-tensors.ts'
import { bytesTensor } from '../testing/step-kinds/step-kind.ts'

t.setTimeout(120_000)

const textsOf = (tensor: NamedTensor | undefined): string[] =>
  tensor === undefined ? [] : readTexts(tensor)
const texts = (...elements: readonly (string | Uint8Array)[]): NamedTensor =>
  bytesTensor('labels', [elements.length], elements)
const indexes = (shape: readonly number[], ...values: readonly number[]): NamedTensor =>
  numberTensor('indexes', 'INT64', shape, values)
const scores = (shape: readonly number[], ...values: readonly number[]): NamedTensor =>
  numberTensor('scores', 'FP32', shape, values)

await t.test('CTC leaves out blanks and repetitions, and scores the letters', async (t) => {
  const run = await openBuiltins(t)
  const given = { name: 'ctcGreedy', alphabet: ['a', 'b', 'ü'] }
  const steps = [0, 1, 1, 0, 1, 2, 3, 3, 0, 0, 0, 0, 0, 0, 3, 0]
  const [text, score] = await run(t, given, [
    indexes([2, 8], ...steps),
    scores([2, 8, 1], ...steps.map((_, i) => i / 8)),
  ])
  t.same(textsOf(text), ['aabü', 'ü'])
  t.same(numbersOf(score ?? scores([0])), [(1 + 4 + 5 + 6) / 8 / 4, 14 / 8])
  const [none, zero] = await run(t, given, [indexes([1, 3], 0, 0, 0), scores([1, 3], 1, 1, 1)])
  t.same(textsOf(none), [''])
  t.same(numbersOf(zero ?? scores([0])), [0])
  const [last] = await run(t, { ...given, blank: 3 }, [indexes([1, 4, 1], 3, 0, 1, 2)])
  t.same(textsOf(last), ['abü'])
  const [nothing] = await run(t, given, [indexes([0, 4])])
  t.same(nothing?.shape, [0])
})

await t.test('steps and scores that do not belong together are refused', async (t) => {
  const directory = t.testdir({ 'two.txt': 'a\nb\n' })
  const run = await openBuiltins(t, directory)
  const given = { name: 'ctcGreedy', file: 'two.txt' }
  const open = { indexes: [-1, -1], scores: [-1, -1] }
  await t.rejects(
    run(t, given, [indexes([2, 3], 0, 1, 2, 0, 1, 2), scores([3, 2], 1, 1, 1, 1, 1, 1)], open),
    {
      reason: 'SHAPE_MISMATCH',
      message: /inputs.scores: got dims \[3,2\], want extent 2 at axis 0/,
    },
  )
  await t.rejects(run(t, given, [indexes([1, 1, 2], 0, 1)], { indexes: [-1, -1, -1] }), {
    reason: 'SHAPE_MISMATCH',
    message: /inputs.indexes: got dims \[1,1,2\], want \[N,T\] or \[N,T,1\]/,
  })
  await t.rejects(run(t, { ...given, blank: 3 }, [indexes([1, 1], 0)]), {
    reason: 'MODEL_LOAD_FAILED',
    message: 'ctcGreedy: blank 3, want at most 2, the number of lines in two.txt',
  })
  const [last] = await run(t, { ...given, blank: 2 }, [indexes([1, 3], 0, 2, 1)])
  t.same(textsOf(last), ['ab'])
})

await t.test('random steps are decoded as by their definition', async (t) => {
  const run = await openBuiltins(t)
  const dice = createDice()
  const alphabet = ['x', 'yy', '', 'ß', '你']
  for (const _ of times(15)) {
    const blank = dice.int(0, 5)
    const [count, length] = [dice.int(0, 4), dice.int(0, 12)]
    const rows = Array.from({ length: count }, () => Array.from({ length }, () => dice.int(0, 5)))
    const all = alphabet.toSpliced(blank, 0, '')
    const want = rows.map((row) =>
      row.map((index, i) => (index === blank || index === row[i - 1] ? '' : all[index])).join(''),
    )
    const datatype = dice.pick('INT32', 'INT64')
    const tensor = numberTensor('indexes', datatype, [count, length], rows.flat())
    const [text] = await run(t, { name: 'ctcGreedy', alphabet, blank }, [tensor])
    t.same(textsOf(text), want)
  }
})

await t.test('labels come from a list or the lines of a file', async (t) => {
  const directory = t.testdir()
  writeFileSync(join(directory, 'labels.txt'), 'cat\r\ndog\n \nfish\n')
  writeFileSync(join(directory, 'marked.txt'), '\ufeffcat\r\ndog\r\n \r\nfish')
  writeFileSync(join(directory, 'latin.txt'), Buffer.from([0x61, 0xe4]))
  const run = await openBuiltins(t, directory)
  const listed = { name: 'labelLookup', labels: ['cat', 'dog', ' ', 'fish'] }
  const files = ['labels.txt', 'marked.txt'].map((file) => ({ name: 'labelLookup', file }))
  for (const given of [listed, ...files]) {
    const [labels] = await run(t, given, [indexes([2, 2], 3, 0, 1, 2)])
    t.same(labels?.shape, [2, 2])
    t.same(textsOf(labels), ['fish', 'cat', 'dog', ' '])
    for (const index of [4, -1]) {
      await t.rejects(run(t, given, [indexes([1], index)]), {
        reason: 'INVALID_REQUEST',
        message: `input "indexes": index ${index}, want 0 to 3`,
      })
    }
  }
  const input = [indexes([1], 0)]
  for (const [file, message] of [
    ['none.txt', /^file none\.txt: it is not beside the model$/],
    ['latin.txt', /^file latin\.txt: got bytes that are no UTF-8, want UTF-8$/],
  ] as const) {
    await t.rejects(run(t, { name: 'labelLookup', file }, input), {
      reason: 'MODEL_LOAD_FAILED',
      message,
    })
  }
  for (const file of ['../labels.txt', '/etc/passwd', '..', 'a\0b']) {
    await t.rejects(run(t, { name: 'labelLookup', file }, input), { message: /"path":"file"/ })
  }
  for (const [given, got] of [
    [{}, 'neither'],
    [{ labels: ['a'], file: 'labels.txt' }, 'both'],
  ] as const) {
    await t.rejects(
      run(t, { name: 'labelLookup', ...given }, input),
      new Refused([{ path: 'labels', got, want: 'either labels or file' }]),
    )
  }
})

await t.test('indexes of labels are those that labels are looked up by', async (t) => {
  const directory = t.testdir()
  const latin = Buffer.from([0x61, 0xe4])
  writeFileSync(join(directory, 'labels.txt'), 'cat\ndog\nfïsh\n')
  writeFileSync(join(directory, 'twice.txt'), 'cat\ndog\ncat\n')
  const run = await openBuiltins(t, directory)
  for (const given of [{ labels: ['cat', 'dog', 'fïsh'] }, { file: 'labels.txt' }]) {
    const own = { ...given, name: 'labelIndex' }
    const [found] = await run(t, own, [texts('fïsh', 'cat', 'fïsh')])
    t.same(numbersOf(found ?? scores([0])), [2, 0, 2])
    await t.rejects(run(t, own, [texts('cat', latin)]), {
      reason: 'INVALID_REQUEST',
      message: 'input "labels": a text at 1 that is no label, want one of 3 labels',
    })
    const [some] = await run(t, { ...own, unknown: -1 }, [texts(latin, 'dog', 'CAT')])
    t.same(numbersOf(some ?? scores([0])), [-1, 1, -1])
  }
  await t.rejects(run(t, { name: 'labelIndex', file: 'twice.txt' }, [texts('cat')]), {
    reason: 'MODEL_LOAD_FAILED',
    message: 'labelIndex: 1 of 3 labels are there twice, want each once',
  })
})

await t.test('only regular files of the folder of the model are read', async (t) => {
  const directory = t.testdir({
    outside: { 'secret.txt': 'secret' },
    model: { 'own.txt': 'cat', 'empty.txt': '', folder: {} },
  })
  const model = join(directory, 'model')
  symlinkSync(join(directory, 'outside', 'secret.txt'), join(model, 'link.txt'))
  symlinkSync('../outside', join(model, 'elsewhere'))
  symlinkSync('own.txt', join(model, 'inside.txt'))
  symlinkSync('nothing.txt', join(model, 'broken.txt'))
  execFileSync('mkfifo', [join(model, 'pipe')])
  writeFileSync(join(model, 'large.txt'), '')
  truncateSync(join(model, 'large.txt'), 2 ** 40)
  const run = await openBuiltins(t, model)
  const lookUp = (file: string) => run(t, { name: 'labelLookup', file }, [indexes([1], 0)])
  t.same(textsOf((await lookUp('inside.txt'))[0]), ['cat'], 'a link within it is its own file')
  for (const [file, why] of [
    ['link.txt', 'it is a link to a file outside of the folder of its model'],
    ['elsewhere', 'it is a link to a file outside of the folder of its model'],
    ['broken.txt', 'it is not beside the model'],
    ['folder', 'it is no regular file'],
    ['pipe', 'it is no regular file'],
    ['large.txt', '1099511627776 bytes, want at most 67108864'],
  ] as const) {
    const message = `file ${file}: ${why}`
    await t.rejects(lookUp(file), { reason: 'MODEL_LOAD_FAILED', message })
  }
})
