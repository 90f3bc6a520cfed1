/** The children of a Model come in at about the same time, one of each kind: its name is still known then. */
const MOST = 16_384

const known = new Map<string, string>()

/**
 * The same text for equal texts, to be kept: each object that the API server sends is read to texts of its own, and ten thousand
 * objects say the same of themselves. It forgets everything once it is full.
 */
export function intern(text: string): string {
  const found = known.get(text)
  if (found !== undefined) return found
  if (known.size === MOST) known.clear()
  known.set(text, text)
  return text
}
