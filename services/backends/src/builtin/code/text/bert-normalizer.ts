/** Normalises a text before it is split into words. */
export type Normalize = (text: string) => string

/** Settings of BertNormalizer in a tokenizer.json. */
export interface BertSettings {
  readonly clean_text: boolean
  readonly handle_chinese_chars: boolean
  /** null: as `lowercase`. */
  readonly strip_accents: boolean | null
  readonly lowercase: boolean
}

/** Ranges of ideographs that get spaces around them. */
const IDEOGRAPHS =
  /[\u{3400}-\u{4dbf}\u{4e00}-\u{9fff}\u{f900}-\u{faff}\u{20000}-\u{2a6df}\u{2a700}-\u{2b73f}\u{2b740}-\u{2b81f}\u{2b920}-\u{2ceaf}\u{2f800}-\u{2fa1f}]/gu
const LEFT_OUT = /[\0\ufffd]|(?![\t\n\r])[\p{Cc}\p{Cf}\p{Co}]/gu
const SPACE = /\p{White_Space}/gu

/** Makes the BertNormalizer of the `tokenizers` library. */
export function bertNormalizer(settings: BertSettings): Normalize {
  const steps: Normalize[] = []
  if (settings.clean_text) steps.push((text) => text.replace(LEFT_OUT, '').replace(SPACE, ' '))
  if (settings.handle_chinese_chars) steps.push((text) => text.replace(IDEOGRAPHS, ' $& '))
  if (settings.strip_accents ?? settings.lowercase) {
    steps.push((text) => text.normalize('NFD').replace(/\p{Mn}/gu, ''))
  }
  if (settings.lowercase) steps.push(lowercase)
  return (text) => steps.reduce((done, step) => step(done), text)
}

/** Lowercases each character by itself: JavaScript's own takes another small sigma at the end of a word. */
export function lowercase(text: string): string {
  return text.replaceAll('Σ', 'σ').toLowerCase()
}
