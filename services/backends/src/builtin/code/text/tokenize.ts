import type { OptionsOf } from '@tutti/builtins'
import { ServeError } from '@tutti/errors'
import { bytesElements, type TensorValue, walkBytesTensor } from '@tutti/tensor'
import { inputOf, misfit } from '../code-inputs.ts'
import type { CodePlace, OpenedCode } from '../code-step.ts'
import {
  type OpenedTokenizer,
  openTokenizer,
  type Padding,
  type Truncation,
} from './open-tokenizer.ts'
import { type TokenRow, TokenRows } from './token-rows.ts'
import {
  countSpecials,
  type TemplateItem,
  type TokenTemplate,
  withoutSpecials,
} from './token-template.ts'

type Options = OptionsOf<'tokenize'>

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
      const texts = inputOf(inputs, 'texts')
      const count = walkBytesTensor(texts.data)
      const pairInput = inputs.get('pairs')
      const pairs = pairInput === undefined ? undefined : readTexts('pairs', pairInput, options)
      const rows = new TokenRows({ count, padding: rules.padding, datatype: options.datatype })
      for (const text of readTexts('texts', texts, options)) {
        const pair = pairs?.next().value
        const second = pair === undefined ? undefined : encode(tokenizer, 'pairs', pair)
        rows.add(toRow(encode(tokenizer, 'texts', text), second, rules))
      }
      return rows.toTensors()
    },
  }
}

/** @throws ServeError INVALID_REQUEST for a word over which the search of Unigram, which is recursive, runs out of stack. */
function encode(tokenizer: OpenedTokenizer, name: string, text: string): readonly number[] {
  try {
    return tokenizer.encode(text)
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    const got = `a text of ${text.length} characters, which is too long for this tokenizer`
    throw misfit(name, got, 'a shorter one', error)
  }
}

/** Reads one text after the other: all of them may take a hundred times the memory of their bytes. */
function* readTexts(
  name: string,
  { data }: TensorValue,
  { maxTextBytes }: Options,
): Generator<string, undefined> {
  let i = 0
  for (const bytes of bytesElements(data)) {
    if (bytes.byteLength > maxTextBytes) {
      throw misfit(
        name,
        `${bytes.byteLength} bytes in text ${i}`,
        `at most maxTextBytes, ${maxTextBytes}`,
      )
    }
    const text = decodeText(bytes)
    if (text === undefined) throw misfit(name, `bytes in text ${i} that are no UTF-8`, 'UTF-8')
    yield text
    i += 1
  }
}

const DECODER = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** @returns undefined for bytes that are no UTF-8. */
function decodeText(bytes: Uint8Array): string | undefined {
  try {
    return DECODER.decode(bytes)
  } catch {
    return undefined
  }
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
): TokenRow {
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
