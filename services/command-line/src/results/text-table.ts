/** Columns to the right of one another, each as wide as `characters` and flush right. */
export function toColumns(texts: readonly string[], characters: number): string {
  return texts.map((text) => text.padStart(characters)).join('')
}

/** A text in at most `width` characters; the last one of a longer text says that it goes on. */
export function cutText(text: string, width: number): string {
  const all = Array.from(text)
  return all.length <= width ? text : `${all.slice(0, Math.max(0, width - 1)).join('')}…`
}

/** A text in just `width` characters. */
export function fitText(text: string, width: number): string {
  const short = cutText(text, width)
  return short + ' '.repeat(Math.max(0, width - countCharacters(short)))
}

/** Characters of a text, those of two UTF-16 units as one. */
export function countCharacters(text: string): number {
  return Array.from(text).length
}
