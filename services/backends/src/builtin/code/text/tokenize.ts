import type { OptionsOf } from '@tutti/builtins'
import { ServeError } from '@tutti/errors'
import { decodeBytesTensor, type NamedTensor, type TensorValue } from '@tutti/tensor'
import { inputOf, misfit } from '../code-inputs.ts'
import type { CodePlace, OpenedCode } from '../code-step.ts'
import {
  type OpenedTokenizer,
  openTokenizer,
  type Padding,
  type Truncation,
} from './open-tokenizer.ts'
import {
  countSpecials,
  type TemplateItem,
  type TokenTemplate,
  withoutSpecials,
} from './token-template.ts'

type Options = OptionsOf<'tokenize'>

/** The tokens of one text or pair. */
interface Row {
  readonly ids: readonly number[]
  readonly types: readonly number[]
}

/** Opens `tokenize`. */
export async function openTokenize(options: Options, place: CodePlace): Promise<OpenedCode> {
  const tokenizer = await openTokenizer(place, options.file)
  const template = options.specialTokens ? tokenizer.template : withoutSpecials(tokenizer.template)
  const rules = {
    template,
    truncation: truncationOf(tokenizer, options),
    padding: paddingOf(tokenizer, options),
  }
  return {
    run: (inputs) => {
      const texts = readTexts('texts', inputOf(inputs, 'texts'), options)
      const pairInput = inputs.get('pairs')
      const pairs = pairInput === undefined ? undefined : readTexts('pairs', pairInput, options)
      if (pairs !== undefined && pairs.length !== texts.length) {
        throw misfit('pairs', `${pairs.length} texts`, `${texts.length}, as many as texts`)
      }
      const rows = texts.map((text, i) => {
        const pair = pairs?.[i]
        const second = pair === undefined ? undefined : tokenizer.encode(pair)
        return toRow(tokenizer.encode(text), second, rules)
      })
      return toTensors(rows, rules.padding, options.datatype)
    },
  }
}

function readTexts(
  name: string,
  { data }: TensorValue,
  { maxTextBytes }: Options,
): readonly string[] {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  return decodeBytesTensor(data).map((bytes, i) => {
    if (bytes.byteLength > maxTextBytes) {
      throw misfit(
        name,
        `${bytes.byteLength} bytes in text ${i}`,
        `at most maxTextBytes, ${maxTextBytes}`,
      )
    }
    try {
      return decoder.decode(bytes)
    } catch {
      throw misfit(name, `bytes in text ${i} that are no UTF-8`, 'UTF-8')
    }
  })
}

/** Truncation of the file, with the length of the options. */
function truncationOf(
  { truncation }: OpenedTokenizer,
  { maxLength }: Options,
): Truncation | undefined {
  if (maxLength === undefined) return truncation ?? undefined
  const { strategy, direction } = truncation ?? { strategy: 'LongestFirst', direction: 'Right' }
  return { strategy, direction, max_length: maxLength }
}

/** Padding of the file, changed by the options; to the longest of a request where neither says anything. */
function paddingOf(tokenizer: OpenedTokenizer, options: Options): Padding | undefined {
  const { padding, maxLength, padId } = options
  if (padding === 'none') return undefined
  const guess = ['[PAD]', '<pad>']
    .map((token) => tokenizer.idOf(token))
    .find((id) => id !== undefined)
  const plain = {
    direction: 'Right',
    pad_id: guess ?? 0,
    pad_type_id: 0,
    pad_to_multiple_of: null,
  } as const
  const ofFile = tokenizer.padding ?? { ...plain, strategy: 'BatchLongest' as const }
  const own = padId === undefined ? {} : { pad_id: padId }
  if (padding === 'longest') return { ...ofFile, ...own, strategy: 'BatchLongest' }
  if (padding === 'file') return { ...ofFile, ...own }
  const fixed = maxLength ?? tokenizer.truncation?.max_length
  if (fixed !== undefined) return { ...ofFile, ...own, strategy: { Fixed: fixed } }
  throw new ServeError(
    'MODEL_LOAD_FAILED',
    'padding maxLength without maxLength, which the file has not either',
  )
}

function toRow(
  first: readonly number[],
  second: readonly number[] | undefined,
  {
    template,
    truncation,
  }: { readonly template: TokenTemplate; readonly truncation: Truncation | undefined },
): Row {
  const items = second === undefined ? template.single : template.pair
  const specials = countSpecials(items)
  const length = truncation?.max_length ?? Infinity
  if (length < specials) {
    throw misfit('texts', `${specials} special tokens with each`, `at most maxLength, ${length}`)
  }
  const room = length - specials
  const cut = truncate([first, second ?? []], room, truncation, second !== undefined)
  const tokensOf = (item: TemplateItem): readonly number[] =>
    'ids' in item ? item.ids : item.text === 'A' ? cut[0] : cut[1]
  return {
    ids: items.flatMap(tokensOf),
    types: items.flatMap((item) => tokensOf(item).map(() => item.type)),
  }
}

/** Cuts the texts to a number of tokens together. */
function truncate(
  [first, second]: readonly [readonly number[], readonly number[]],
  room: number,
  truncation: Truncation | undefined,
  isPair: boolean,
): readonly [readonly number[], readonly number[]] {
  const over = first.length + second.length - room
  if (truncation === undefined || over <= 0) return [first, second]
  const cut = (ids: readonly number[], length: number): readonly number[] =>
    truncation.direction === 'Right' ? ids.slice(0, length) : ids.slice(ids.length - length)
  if (truncation.strategy === 'LongestFirst') {
    if (!isPair) return [cut(first, room), second]
    const [a, b] = longestFirst(first.length, second.length, room)
    return [cut(first, a), cut(second, b)]
  }
  const isFirst = truncation.strategy === 'OnlyFirst'
  const target = isFirst ? first : second
  if (target.length <= over) {
    const name = isFirst ? 'texts' : 'pairs'
    throw misfit(
      name,
      `a text of ${target.length} tokens`,
      `more than ${over}, which are to be cut from it (${truncation.strategy})`,
    )
  }
  const rest = cut(target, target.length - over)
  return isFirst ? [rest, second] : [first, rest]
}

/** The lengths of two texts that are to have so much room together: first the longer one is cut, then both alike. */
function longestFirst(first: number, second: number, room: number): readonly [number, number] {
  const short = Math.min(first, second)
  const long = short > room ? short : Math.max(short, room - short)
  const half = Math.floor(room / 2)
  const [low, high] = short + long > room ? [half, half + (room % 2)] : [short, long]
  return first > second ? [high, low] : [low, high]
}

function toTensors(
  rows: readonly Row[],
  padding: Padding | undefined,
  datatype: Options['datatype'],
): readonly NamedTensor[] {
  const lengths = rows.map(({ ids }) => ids.length)
  const width = widthOf(lengths, padding)
  const shape = [rows.length, width]
  const make = (
    name: string,
    valuesOf: (row: Row) => readonly number[],
    pad: number,
  ): NamedTensor => {
    const values = new Int32Array(rows.length * width).fill(pad)
    rows.forEach((row, i) => {
      const left = padding?.direction === 'Left' ? Math.max(width - row.ids.length, 0) : 0
      values.set(valuesOf(row), i * width + left)
    })
    return { name, datatype, shape, data: bytesOf(values, datatype) }
  }
  return [
    make('input_ids', ({ ids }) => ids, padding?.pad_id ?? 0),
    make('attention_mask', ({ ids }) => ids.map(() => 1), 0),
    make('token_type_ids', ({ types }) => types, padding?.pad_type_id ?? 0),
  ]
}

function widthOf(lengths: readonly number[], padding: Padding | undefined): number {
  const longest = Math.max(0, ...lengths)
  if (padding === undefined) {
    const other = lengths.find((length) => length !== longest)
    if (other === undefined) return longest
    throw misfit(
      'texts',
      `texts of ${other} and of ${longest} tokens`,
      'the same number of tokens, since padding is none',
    )
  }
  const { strategy, pad_to_multiple_of: multiple } = padding
  const least = strategy === 'BatchLongest' ? longest : strategy.Fixed
  const rounded =
    multiple === null || multiple === 0 ? least : Math.ceil(least / multiple) * multiple
  const other = lengths.find((length) => length > rounded)
  if (other === undefined) return rounded
  throw misfit('texts', `a text of ${other} tokens`, `at most ${rounded}, to which all are padded`)
}

function bytesOf(values: Int32Array, datatype: Options['datatype']): Uint8Array {
  const { buffer } = datatype === 'INT32' ? values : BigInt64Array.from(values, BigInt)
  return new Uint8Array(buffer)
}
