import { type BertSettings, bertNormalizer, lowercase, type Normalize } from './bert-normalizer.ts'
import { charsmapNormalizer } from './charsmap.ts'
import { ReplaceNormalizer } from './tokenizers-library.ts'

/** A part of a tokenizer.json, as it stands there. */
export interface Part {
  readonly type: string
  readonly [field: string]: unknown
}

/** Thrown for a part of a tokenizer.json that would give other tokens than the `tokenizers` library of Python. */
export class UnsupportedPart extends Error {}

/** Punctuation as BERT has it: that of Unicode and all of ASCII that is no letter and no digit. */
const PUNCTUATION = '[\\p{P}\\x21-\\x2F\\x3A-\\x40\\x5B-\\x60\\x7B-\\x7E]'
/** Characters of words as Rust's regular expressions have them. */
const LETTERS = '\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\p{Join_Control}'

const split = (Regex: string, behavior: 'Isolated' | 'Removed', invert = false): Part => {
  return { type: 'Split', pattern: { Regex }, behavior, invert }
}
const sequence = (...pretokenizers: readonly (Part | null)[]): Part => {
  return { type: 'Sequence', pretokenizers }
}
const SPACES = split('\\s+', 'Removed')

/**
 * Rewrites a pre-tokenizer. The library has regular expressions of its own for some, in which a space is what JavaScript takes for one, and
 * letters and digits are those of ASCII. Those in a file it translates as they are meant.
 */
export function rewritePreTokenizer(part: Part | null): Part | null {
  if (part === null) return null
  const rewrite = PRE_TOKENIZERS[part.type]
  if (rewrite === undefined) throw unsupported('pre_tokenizer', part, Object.keys(PRE_TOKENIZERS))
  return rewrite(part)
}

const PRE_TOKENIZERS: Readonly<Record<string, (part: Part) => Part>> = {
  BertPreTokenizer: () => sequence(SPACES, split(PUNCTUATION, 'Isolated')),
  // Mended once it is made.
  ByteLevel: (part) => part,
  Digits: ({ individual_digits: single }) =>
    split(single === true ? '\\p{N}' : '\\p{N}+', 'Isolated'),
  Metaspace: (part) => part,
  Punctuation: rewritePunctuation,
  Sequence: (part) => sequence(...partsOf(part['pretokenizers']).map(rewritePreTokenizer)),
  Split: rewriteSplit,
  Whitespace: () => split(`[${LETTERS}]+|[^${LETTERS}\\s]+`, 'Removed', true),
  WhitespaceSplit: () => SPACES,
}

function rewritePunctuation(part: Part): Part {
  const { behavior = 'Isolated' } = part
  if (behavior === 'Isolated' || behavior === 'Removed') return split(PUNCTUATION, behavior)
  if (behavior === 'Contiguous') return split(`${PUNCTUATION}+`, 'Isolated')
  throw new UnsupportedPart(`pre_tokenizer Punctuation: behavior ${JSON.stringify(behavior)}`)
}

function rewriteSplit(part: Part): Part {
  const { behavior, invert } = part
  if (behavior === 'Removed' || (behavior === 'Isolated' && invert !== true)) return part
  const text = `behavior ${JSON.stringify(behavior)}${invert === true ? ' with invert' : ''}`
  throw new UnsupportedPart(`pre_tokenizer Split: ${text}`)
}

/** Makes a normaliser; null for none. */
export function makeNormalizer(part: Part | null): Normalize | null {
  return part === null ? null : normalizeOf(part)
}

function normalizeOf(part: Part): Normalize {
  const make = NORMALIZERS[part.type]
  if (make === undefined) throw unsupported('normalizer', part, Object.keys(NORMALIZERS))
  return make(part)
}

const toForm = (form: string) => (): Normalize => (text) => text.normalize(form)

const NORMALIZERS: Readonly<Record<string, (part: Part) => Normalize>> = {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the settings of every file of this type
  BertNormalizer: (part) => bertNormalizer(part as unknown as BertSettings),
  Lowercase: () => lowercase,
  NFC: toForm('NFC'),
  NFD: toForm('NFD'),
  NFKC: toForm('NFKC'),
  NFKD: toForm('NFKD'),
  Precompiled: ({ precompiled_charsmap: map }) =>
    charsmapNormalizer(Buffer.from(typeof map === 'string' ? map : '', 'base64')),
  Prepend:
    ({ prepend }) =>
    (text) =>
      text === '' ? text : `${String(prepend)}${text}`,
  Replace: (part) => new ReplaceNormalizer(part),
  Sequence: (part) => {
    const steps = partsOf(part['normalizers']).map(normalizeOf)
    return (text) => steps.reduce((done, step) => step(done), text)
  },
  Strip: ({ strip_left: left, strip_right: right }) => {
    const ends = [
      ...(left === true ? ['^\\p{White_Space}+'] : []),
      ...(right === true ? ['\\p{White_Space}+$'] : []),
    ]
    return (text) => (ends.length === 0 ? text : text.replace(new RegExp(ends.join('|'), 'gu'), ''))
  },
  StripAccents: () => (text) => text.replace(/\p{M}/gu, ''),
}

/** Parts of a sequence. */
export function partsOf(value: unknown): readonly Part[] {
  if (Array.isArray(value)) return value
  throw new UnsupportedPart(`a sequence of ${JSON.stringify(value)}`)
}

function unsupported(field: string, { type }: Part, known: readonly string[]): UnsupportedPart {
  return new UnsupportedPart(`${field} ${JSON.stringify(type)}, want one of ${known.join(', ')}`)
}
