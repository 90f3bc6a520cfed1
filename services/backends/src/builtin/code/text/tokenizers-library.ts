import * as library from '@huggingface/tokenizers'
import type { Normalize } from './bert-normalizer.ts'

/** The part of the library that is used. Its own types do not resolve here: they name modules without their extensions. */
interface LibraryLike {
  readonly Tokenizer: new (
    json: object,
    config: { unk_token?: string | undefined },
  ) => TokenizerLike
  readonly ByteLevelPreTokenizer: new (part: object) => PartLike
  readonly ByteFallbackDecoder: new (part: object) => PartLike
  /** Makes a normaliser, which replaces what a pattern matches. */
  readonly ReplaceNormalizer: new (
    part: object,
  ) => Normalize
}

/** A pre-tokenizer or decoder of the library. */
interface PartLike {
  /** Regular expression of a ByteLevel. */
  pattern?: RegExp
  decode_chain?(tokens: readonly string[]): readonly string[]
  /** Parts of a sequence of pre-tokenizers. */
  readonly tokenizers?: readonly PartLike[]
  /** Parts of a sequence of decoders. */
  readonly decoders?: readonly PartLike[]
}

/** A tokenizer of the library. */
export interface TokenizerLike {
  /** Called for each piece of text between added tokens. */
  normalizer: Normalize | null
  readonly pre_tokenizer: PartLike | null
  readonly decoder: PartLike | null
  encode(
    text: string,
    o: { readonly add_special_tokens: boolean },
  ): { readonly ids: readonly number[] }
  decode(
    ids: readonly number[],
    o: { readonly skip_special_tokens: boolean; readonly clean_up_tokenization_spaces: boolean },
  ): string
  id_to_token(id: number): string | undefined
  token_to_id(token: string): number | undefined
}

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- tests of every part of the library hold it
const parts = library as unknown as LibraryLike
const { Tokenizer, ReplaceNormalizer, ByteLevelPreTokenizer, ByteFallbackDecoder } = parts

export { ReplaceNormalizer, Tokenizer }

/** The words of GPT-2, with the spaces of Unicode, as the Python library has them. JavaScript's own are others by two. */
const WORDS =
  /'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\p{White_Space}\p{L}\p{N}]+|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}+/gu
const BYTE = /^<0x([0-9A-Fa-f]{2})>$/

/** Mends two parts of the library that differ from the Python one: spaces in ByteLevel, and bytes that are no UTF-8 in ByteFallback. */
export function mendParts({ pre_tokenizer: splitter, decoder }: TokenizerLike): void {
  for (const part of [splitter, ...(splitter?.tokenizers ?? [])]) {
    if (part instanceof ByteLevelPreTokenizer) part.pattern = WORDS
  }
  for (const part of [decoder, ...(decoder?.decoders ?? [])]) {
    if (part instanceof ByteFallbackDecoder) part.decode_chain = joinByteTokens
  }
}

/** Makes texts of runs of byte tokens; of a run that is no UTF-8 a replacement character for each byte. */
function joinByteTokens(tokens: readonly string[]): readonly string[] {
  const out: string[] = []
  let run: number[] = []
  const endRun = (): void => {
    // No spread: a call takes some 100,000 arguments.
    if (run.length > 0) for (const text of textOf(run)) out.push(text)
    run = []
  }
  for (const token of tokens) {
    const [, digits] = BYTE.exec(token) ?? []
    if (digits !== undefined) run.push(Number.parseInt(digits, 16))
    else {
      endRun()
      out.push(token)
    }
  }
  endRun()
  return out
}

function textOf(bytes: readonly number[]): readonly string[] {
  try {
    const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
    return [decoder.decode(Uint8Array.from(bytes))]
  } catch {
    // No UTF-8.
    return bytes.map(() => '\ufffd')
  }
}
