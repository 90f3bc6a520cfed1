// needs: python
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isDeepStrictEqual } from 'node:util'
import { decodeBytesTensor, encodeBytesTensor, type NamedTensor } from '@tutti/tensor'
import t from 'tap'
import { createDice, type Dice, python, times } from '../testing/dice.ts'
import { startNumpy } from '../testing/numpy-reference.ts'
import { TEST_PYTHON, WITHOUT_PYTHON } from '../testing/python-model.ts'
import { equalTensors, numberTensor } from '../testing/random-tensors.ts'
import { openDetokenize } from './code/text/detokenize.ts'
import { openTokenize } from './code/text/tokenize.ts'

const TRAIN = fileURLToPath(new URL('../testing/train_tokenizers.py', import.meta.url))
const KINDS = [
  'bert',
  'bert-cased',
  'roberta',
  'gpt2',
  'llama3',
  'llama2',
  'unigram',
  'xlm',
  'words',
]

const WORDS =
  `the a model serves tensors don't we're running unbelievable 12345 3.14 hello WORLD München café naïve Привет мир 你好 世界
こんにちは مرحبا שלום ΟΔΟΣ Σίσυφος İstanbul ﬁne ① ½ 👩‍👩‍👧 [MASK] <s> </s> <|endoftext|> [CLS] <pad> <mask> ___ -- ... ?! \ud840\udc00 𝔘 ß ẞ ſ K Å`
    .split(/\s+/)
    .concat([
      '\u0301x',
      'e\u0300\u0301',
      '\u200d',
      '\ufeff',
      '\u00ad',
      '\u3000',
      '\u2028',
      '\0',
      '\x07',
      '\ufffd',
      '\u0085',
      '\t',
      '\n',
      '\r\n',
    ])

const RANGES: readonly (readonly [number, number])[] = [
  [0x20, 0x7e],
  [0xa0, 0x5ff],
  [0x900, 0x97f],
  [0x2000, 0x2bff],
  [0x3040, 0x30ff],
  [0x4e00, 0x9fff],
  [0xac00, 0xd7a3],
  [0x1f300, 0x1f5ff],
]

/** A character that no library is too old for. */
function drawCharacter(dice: Dice): string {
  const [low, high] = dice.pick(...RANGES)
  return String.fromCodePoint(dice.int(low, high))
}

function drawText(dice: Dice): string {
  const parts = Array.from({ length: dice.int(0, 14) }, () => {
    if (dice.int(0, 2) > 0) return `${dice.pick(...WORDS)}${dice.pick(' ', ' ', '', '  ')}`
    return drawCharacter(dice)
  })
  return parts.join('')
}

const texts = (name: string, values: readonly string[]): NamedTensor => {
  const data = encodeBytesTensor(values.map((value) => Buffer.from(value)))
  return { name, datatype: 'BYTES', shape: [values.length], data }
}
const byName = (...tensors: readonly NamedTensor[]): Map<string, NamedTensor> =>
  new Map(tensors.map((tensor) => [tensor.name, tensor]))

const defaults = {
  file: 'tokenizer.json',
  padding: 'file',
  specialTokens: true,
  maxTextBytes: 65_536,
  datatype: 'INT64',
} as const

await t.test('tokens are those of the tokenizers library', { skip: WITHOUT_PYTHON }, async (t) => {
  const directory = t.testdir()
  execFileSync(TEST_PYTHON ?? '', [TRAIN, directory])
  const numpy = startNumpy(t, TEST_PYTHON ?? '')
  for (const kind of KINDS) {
    // oxlint-disable-next-line complexity -- each option is drawn or not
    await t.test(kind, async (t) => {
      const dice = createDice()
      const file = `${kind}.json`
      const load = `
import tokenizers, json
t = tokenizers.Tokenizer.from_file(${python(join(directory, file))})`
      for (const i of times(40)) {
        const count = dice.int(1, 5)
        const values = Array.from({ length: count }, () => drawText(dice))
        const pairs = dice.isTrue()
          ? Array.from({ length: count }, () => drawText(dice))
          : undefined
        const maxLength = dice.isTrue() ? dice.int(6, 30) : undefined
        const padding = dice.pick<'file' | 'longest' | 'maxLength'>(
          'file',
          'longest',
          maxLength === undefined ? 'file' : 'maxLength',
        )
        const specialTokens = dice.isTrue()
        const datatype = dice.pick<'INT32' | 'INT64'>('INT32', 'INT64')
        const setup = `${load}
texts, pairs = json.loads(${python(JSON.stringify(values))}), json.loads(${python(JSON.stringify(pairs ?? null))})
old, pad = t.truncation or {}, t.padding or {}
if ${python(maxLength)}: t.enable_truncation(${python(maxLength)}, strategy=old.get('strategy', 'longest_first'), direction=old.get('direction', 'right'))
pad.setdefault('pad_id', next((i for i in map(t.token_to_id, ['[PAD]', '<pad>']) if i is not None), 0))
if '${padding}' != 'file': pad['length'] = ${python(padding === 'longest' ? undefined : maxLength)}
t.enable_padding(**pad)
try:
    rows = t.encode_batch(list(zip(texts, pairs)) if pairs else texts, add_special_tokens=${python(specialTokens)})
    out = tuple(np.array([getattr(row, f) for row in rows], '${datatype.toLowerCase()}') for f in ('ids', 'attention_mask', 'type_ids'))
except BaseException as error:
    out = np.array([])
`
        const wanted = await numpy('out', [], setup)
        const inputs = byName(
          texts('texts', values),
          ...(pairs === undefined ? [] : [texts('pairs', pairs)]),
        )
        const options = {
          ...defaults,
          file,
          padding,
          specialTokens,
          datatype,
          ...(maxLength === undefined ? {} : { maxLength }),
        }
        const code = await openTokenize(options, { directories: [directory] })
        // Texts have characters that end lines of the report.
        const text = `${i} ${JSON.stringify(options)}`
        if (wanted.length === 1) {
          await t.rejects(async () => await code.run(inputs), { message: /^input / }, text)
          continue
        }
        const got = await code.run(inputs)
        got.forEach((one, at) => equalTensors(t, one, wanted[at], text))
        const ids = got[0] ?? numberTensor('ids', 'INT64', [0, 0], [])
        const skipSpecialTokens = dice.isTrue()
        const [decoded] = await numpy(
          `np.array([list(json.dumps([t.decode(row, skip_special_tokens=${python(skipSpecialTokens)}) for row in ids]).encode())], 'uint8')`,
          [{ ...ids, name: 'ids' }],
          load,
        )
        const back = await openDetokenize({ file, skipSpecialTokens }, { directories: [directory] })
        const [out] = await back.run(byName({ ...ids, name: 'ids' }))
        const made = decodeBytesTensor(out?.data ?? new Uint8Array()).map((bytes) =>
          Buffer.from(bytes).toString(),
        )
        t.ok(isDeepStrictEqual(made, JSON.parse(Buffer.from(decoded?.data ?? []).toString())), text)
      }
    })
  }
})
