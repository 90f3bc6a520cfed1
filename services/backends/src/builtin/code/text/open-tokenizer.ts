import { ServeError } from '@tutti/errors'
import { z } from 'zod'
import type { CodePlace } from '../code-step.ts'
import { readPlacedFile } from './text-lines.ts'
import { readTemplate, type TokenTemplate } from './token-template.ts'
import { makeNormalizer, rewritePreTokenizer, UnsupportedPart } from './tokenizer-parts.ts'
import { mendParts, Tokenizer } from './tokenizers-library.ts'

const PartSchema = z.looseObject({ type: z.string() })
const Direction = z.enum(['Left', 'Right'])

/** The fields of a tokenizer.json that decide about tokens. */
const TokenizerFile = z.looseObject({
  truncation: z
    .looseObject({
      direction: Direction.default('Right'),
      max_length: z.int().min(0),
      strategy: z.enum(['LongestFirst', 'OnlyFirst', 'OnlySecond']),
    })
    .nullable()
    .default(null),
  padding: z
    .looseObject({
      strategy: z.union([z.literal('BatchLongest'), z.looseObject({ Fixed: z.int().min(0) })]),
      direction: Direction,
      pad_to_multiple_of: z.int().min(0).nullable().default(null),
      pad_id: z.int(),
      pad_type_id: z.int(),
    })
    .nullable()
    .default(null),
  added_tokens: z
    .array(z.looseObject({ id: z.int(), content: z.string(), single_word: z.boolean().optional() }))
    .default([]),
  normalizer: PartSchema.nullable().default(null),
  pre_tokenizer: PartSchema.nullable().default(null),
  post_processor: PartSchema.nullable().default(null),
  decoder: PartSchema.nullable().default(null),
  model: z.looseObject({
    type: z.string().optional(),
    unk_token: z.string().nullable().optional(),
  }),
})
type TokenizerFile = z.infer<typeof TokenizerFile>
export type Truncation = NonNullable<TokenizerFile['truncation']>
export type Padding = NonNullable<TokenizerFile['padding']>

/** A tokenizer, and the rules of its file. */
export interface OpenedTokenizer {
  readonly truncation: Truncation | null
  readonly padding: Padding | null
  readonly template: TokenTemplate
  /** Gives the tokens of a text, without special ones that the text itself does not have. */
  encode(text: string): readonly number[]
  /** Gives the text of tokens. Ids that are no token's are left out. */
  decode(ids: readonly number[], o: { readonly skipSpecials: boolean }): string
  /** Number of characters of a token; 0 for an id that is no token's. */
  lengthOf(id: number): number
  /** Id of a token; undefined if there is none of that text. */
  idOf(token: string): number | undefined
}

/** Opens a tokenizer.json. @throws ServeError MODEL_LOAD_FAILED; it names a part that gives other tokens than Python's library. */
export async function openTokenizer(place: CodePlace, name: string): Promise<OpenedTokenizer> {
  const content = await readPlacedFile(place, name)
  try {
    return toTokenizer(TokenizerFile.parse(JSON.parse(content.toString('utf8'))))
  } catch (error) {
    const text =
      error instanceof z.ZodError ? z.prettifyError(error) : ServeError.from(error).message
    throw new ServeError('MODEL_LOAD_FAILED', `file ${name}: ${text}`, { cause: error })
  }
}

function toTokenizer(file: TokenizerFile): OpenedTokenizer {
  refuseUnsupported(file)
  const pre_tokenizer = rewritePreTokenizer(file.pre_tokenizer)
  const normalizer = makeNormalizer(file.normalizer)
  const json = { ...file, pre_tokenizer, post_processor: null }
  const tokenizer = new Tokenizer(json, { unk_token: file.model.unk_token ?? undefined })
  tokenizer.normalizer = normalizer
  mendParts(tokenizer)
  return {
    truncation: file.truncation,
    padding: file.padding,
    template: readTemplate(file.post_processor),
    encode: (text) => tokenizer.encode(text, { add_special_tokens: false }).ids,
    decode: (ids, { skipSpecials }) => {
      const known = ids.filter((id) => tokenizer.id_to_token(id) !== undefined)
      if (known.length === 0) return ''
      const options = { skip_special_tokens: skipSpecials, clean_up_tokenization_spaces: false }
      return tokenizer.decode(known, options)
    },
    lengthOf: (id) => tokenizer.id_to_token(id)?.length ?? 0,
    idOf: (token) => tokenizer.token_to_id(token),
  }
}

/** Refuses models that the library computes otherwise. */
function refuseUnsupported({ model, added_tokens: added }: TokenizerFile): void {
  const {
    type = 'of an old file',
    dropout,
    byte_fallback: bytes,
    continuing_subword_prefix: prefix,
  } = model
  const single = added.find((token) => token.single_word === true)
  const faults = [
    !MODELS.includes(type) && `model ${type}, want one of ${MODELS.join(', ')}`,
    Number(dropout ?? 0) > 0 && `model ${type} with dropout ${String(dropout)}`,
    type === 'Unigram' && bytes === true && 'model Unigram with byte_fallback',
    type === 'BPE' && Boolean(prefix) && 'model BPE with continuing_subword_prefix',
    single !== undefined && `added token ${JSON.stringify(single.content)} with single_word`,
  ]
  const fault = faults.find((text) => typeof text === 'string')
  if (fault !== undefined) throw new UnsupportedPart(fault)
}

const MODELS = ['BPE', 'Unigram', 'WordLevel', 'WordPiece']
