/** Joins texts to columns that are `characters` wide and flush right. */
export function toColumns(texts: readonly string[], characters: number): string {
  return texts.map((text) => text.padStart(characters)).join('')
}

/** Cuts a text to at most `width` characters; a cut text ends with `…`. */
export function cutToWidth(text: string, width: number): string {
  const all = Array.from(text)
  return all.length <= width ? text : `${all.slice(0, Math.max(0, width - 1)).join('')}…`
}

/** Cuts or pads a text to exactly `width` characters. */
export function fitText(text: string, width: number): string {
  const short = cutToWidth(text, width)
  return short + ' '.repeat(Math.max(0, width - countCharacters(short)))
}

/** Counts the characters of a text; a pair of UTF-16 surrogates is one character. */
export function countCharacters(text: string): number {
  return Array.from(text).length
}
