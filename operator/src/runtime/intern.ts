/** The children of a Model come in at about the same time, one of each kind: its name is still known then. */
const MOST = 16_384

const known = new Map<string, string>()

/**
 * Returns one shared string for equal strings, to save memory: ten thousand objects from the API server repeat the same texts.
 * The table is cleared when it holds 16,384 strings.
 */
export function intern(text: string): string {
  const found = known.get(text)
  if (found !== undefined) return found
  if (known.size === MOST) known.clear()
  known.set(text, text)
  return text
}
