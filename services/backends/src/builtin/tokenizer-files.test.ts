import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { encodeBytesTensor, type NamedTensor } from '@tutti/tensor'
import t from 'tap'
import { openBuiltins, Refused } from '../testing/builtin-steps.ts'
import { numbersOf, numberTensor } from '../testing/random-tensors.ts'
import { CodeThread } from './code/code-thread.ts'

/** A tokenizer.json of four words. */
const WORDS = {
  added_tokens: [{ id: 3, content: '[SEP]', special: true }],
  normalizer: null,
  pre_tokenizer: { type: 'WhitespaceSplit' },
  post_processor: {
    type: 'TemplateProcessing',
    single: [{ Sequence: { id: 'A', type_id: 0 } }, { SpecialToken: { id: '[SEP]', type_id: 0 } }],
    pair: [{ Sequence: { id: 'A', type_id: 0 } }, { Sequence: { id: 'B', type_id: 1 } }],
    special_tokens: { '[SEP]': { id: '[SEP]', ids: [3], tokens: ['[SEP]'] } },
  },
  decoder: null,
  model: { type: 'WordLevel', vocab: { '[UNK]': 0, a: 1, b: 2, '[SEP]': 3 }, unk_token: '[UNK]' },
}

const texts = (name: string, ...values: readonly (string | Uint8Array)[]): NamedTensor => {
  const data = encodeBytesTensor(values.map((value) => Buffer.from(value)))
  return { name, datatype: 'BYTES', shape: [values.length], data }
}
const step = { name: 'tokenize' }

await t.test('tokens are padded and cut as the options say', async (t) => {
  const directory = t.testdir({ 'tokenizer.json': JSON.stringify(WORDS) })
  const run = await openBuiltins(t, directory)
  const input = texts('texts', 'a b', 'c', '')
  const [ids, mask, types] = await run(t, step, [input])
  t.same(numbersOf(ids ?? input), [1, 2, 3, 0, 3, 0, 3, 0, 0])
  t.same(numbersOf(mask ?? input), [1, 1, 1, 1, 1, 0, 1, 0, 0])
  t.same(numbersOf(types ?? input), [0, 0, 0, 0, 0, 0, 0, 0, 0])
  const fixed = { ...step, padding: 'maxLength', maxLength: 2, padId: 7, datatype: 'INT32' }
  const [four] = await run(t, fixed, [input])
  t.equal(four?.datatype, 'INT32')
  t.same(numbersOf(four ?? input), [1, 3, 0, 3, 3, 7])
  const [pair, , second] = await run(t, step, [texts('texts', 'a'), texts('pairs', 'b a')])
  t.same(numbersOf(pair ?? input), [1, 2, 1])
  t.same(numbersOf(second ?? input), [0, 1, 1])
  const [none] = await run(t, step, [texts('texts')])
  t.same(none?.shape, [0, 0])
  const [words] = await run(t, { name: 'detokenize' }, [
    numberTensor('ids', 'INT64', [2, 3], [1, 2, 3, 9, 0, -1]),
  ])
  t.equal(Buffer.from(words?.data ?? []).toString('latin1'), '\x03\0\0\0a b\x05\0\0\0[UNK]')
})

await t.test('inputs and options that do not fit are refused', async (t) => {
  const directory = t.testdir({ 'tokenizer.json': JSON.stringify(WORDS) })
  const run = await openBuiltins(t, directory)
  for (const [options, inputs, message] of [
    [
      { maxTextBytes: 3 },
      [texts('texts', 'a', 'abcd')],
      'input "texts": 4 bytes in text 1, want at most maxTextBytes, 3',
    ],
    [
      {},
      [texts('texts', Buffer.from([0xff]))],
      'input "texts": bytes in text 0 that are no UTF-8, want UTF-8',
    ],
    [
      { padding: 'none' },
      [texts('texts', 'a', 'a b')],
      'input "texts": texts of 2 and of 3 tokens, want the same number of tokens, since padding is none',
    ],
  ] as const) {
    const open = { texts: [-1], pairs: [-1] }
    await t.rejects(run(t, { ...step, ...options }, inputs, open), {
      reason: 'INVALID_REQUEST',
      message,
    })
  }
  await t.rejects(
    run(t, step, [texts('texts', 'a', 'b'), texts('pairs', 'b')], { texts: [-1], pairs: [-1] }),
    {
      reason: 'SHAPE_MISMATCH',
      message:
        'built-in tokenize, inputs.pairs: got dims [1], want extent 2 at axis 0, as texts has',
    },
  )
  await t.rejects(run(t, { ...step, padding: 'maxLength' }, [texts('texts', 'a')]), {
    reason: 'MODEL_LOAD_FAILED',
    message: /^padding maxLength without maxLength/,
  })
  await t.rejects(
    run(t, { ...step, padding: 'none', padId: 1 }, [texts('texts', 'a')]),
    new Refused([{ path: 'padId', got: '1', want: 'none without padding' }]),
  )
})

await t.test(
  'a file that would give other tokens than in Python is refused by the part',
  async (t) => {
    const directory = t.testdir()
    const run = await openBuiltins(t, directory)
    const model = { type: 'BPE', vocab: { a: 0 }, merges: [] }
    for (const [part, message] of [
      [
        { model: { ...WORDS.model, type: 'Other' } },
        'model Other, want one of BPE, Unigram, WordLevel, WordPiece',
      ],
      [{ model: { ...model, dropout: 0.1 } }, 'model BPE with dropout 0.1'],
      [
        { model: { ...model, continuing_subword_prefix: '##' } },
        'model BPE with continuing_subword_prefix',
      ],
      [
        { model: { type: 'Unigram', vocab: [['a', 0]], unk_id: 0, byte_fallback: true } },
        'model Unigram with byte_fallback',
      ],
      [
        { added_tokens: [{ id: 3, content: 'x', single_word: true }] },
        'added token "x" with single_word',
      ],
      [{ normalizer: { type: 'Nmt' } }, /^normalizer "Nmt", want one of BertNormalizer, /],
      [
        { normalizer: { type: 'Sequence', normalizers: [{ type: 'Nmt' }] } },
        /^normalizer "Nmt", want one of /,
      ],
      [
        { normalizer: { type: 'Precompiled', precompiled_charsmap: '/wAAAA==' } },
        'charsmap is cut short',
      ],
      [
        { pre_tokenizer: { type: 'UnicodeScripts' } },
        /^pre_tokenizer "UnicodeScripts", want one of /,
      ],
      [
        { pre_tokenizer: { type: 'Punctuation', behavior: 'MergedWithNext' } },
        'pre_tokenizer Punctuation: behavior "MergedWithNext"',
      ],
      [
        {
          pre_tokenizer: {
            type: 'Split',
            pattern: { String: 'a' },
            behavior: 'Isolated',
            invert: true,
          },
        },
        'pre_tokenizer Split: behavior "Isolated" with invert',
      ],
      [
        { post_processor: { type: 'Other' } },
        'post_processor "Other", want one of BertProcessing, RobertaProcessing, TemplateProcessing, ByteLevel',
      ],
      [{ decoder: { type: 'Other' } }, /Other/],
      [{ model: undefined }, /model/],
    ] as const) {
      writeFileSync(join(directory, 'tokenizer.json'), JSON.stringify({ ...WORDS, ...part }))
      const text =
        typeof message === 'string'
          ? `file tokenizer.json: ${message}`
          : new RegExp(message.source.replace('^', '^file tokenizer.json: '))
      await t.rejects(run(t, step, [texts('texts', 'a')]), {
        reason: 'MODEL_LOAD_FAILED',
        message: text,
      })
    }
    for (const content of ['', '{', '[]', 'null', '{"model":3}']) {
      writeFileSync(join(directory, 'tokenizer.json'), content)
      await t.rejects(run(t, step, [texts('texts', 'a')]), {
        reason: 'MODEL_LOAD_FAILED',
        message: /^file tokenizer\.json: /,
      })
    }
  },
)

await t.test(
  'a text over which a regular expression takes too long ends the request, and the next one is answered',
  async (t) => {
    const evil = {
      type: 'Split',
      pattern: { Regex: '(a+)+b' },
      behavior: 'Isolated',
      invert: false,
    }
    const directory = t.testdir({
      'tokenizer.json': JSON.stringify({ ...WORDS, pre_tokenizer: evil }),
    })
    const options = {
      file: 'tokenizer.json',
      padding: 'file',
      specialTokens: false,
      maxTextBytes: 65_536,
      datatype: 'INT64',
    }
    const thread = await CodeThread.open(
      { name: 'tokenize', options, place: { directories: [directory] } },
      { maxCallMs: 300 },
    )
    t.teardown(() => thread.close())
    await t.rejects(thread.run(new Map([['texts', texts('texts', 'a'.repeat(60))]])), {
      reason: 'ENGINE_FAILED',
      message: 'built-in tokenize: a request took more than 300 ms, and was ended',
    })
    const [ids] = await thread.run(new Map([['texts', texts('texts', 'a')]]))
    t.same(numbersOf(ids ?? texts('')), [1])
  },
)
