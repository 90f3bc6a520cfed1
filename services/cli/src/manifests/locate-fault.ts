/**
 * Converts the path that a check reports (`steps[2](ocr).inputMap[image]`) to a path from the manifest's root, as far as the
 * manifest has it. Names of tensors may have any character, so the manifest's own keys tell where a name ends.
 *
 * @param spec - the manifest's spec.
 * @param path - path from the spec; other text may follow.
 */
export function locateFault(spec: unknown, path: string): readonly (string | number)[] {
  const found: (string | number)[] = []
  let rest = path
  let node: unknown = spec
  while (rest !== '' && typeof node === 'object' && node !== null) {
    const next = Array.isArray(node) ? nextItem(rest) : nextMember(Object.keys(node), rest)
    if (next === undefined) break
    found.push(next.key)
    rest = rest.slice(next.length)
    node = new Map(Object.entries(node)).get(String(next.key))
  }
  return ['spec', ...found]
}

interface Next {
  readonly key: string | number
  /** How much of the path it takes. */
  readonly length: number
}

function nextItem(rest: string): Next | undefined {
  const [text, index] = /^\[([0-9]+)\](\([^)]*\))?/.exec(rest) ?? []
  return text === undefined ? undefined : { key: Number(index), length: text.length }
}

function nextMember(keys: readonly string[], rest: string): Next | undefined {
  const fits = keys.flatMap((key) => {
    const written = [`.${key}`, `[${key}]`, key].find((form) => rest.startsWith(form))
    return written === undefined ? [] : [{ key, length: written.length }]
  })
  return fits.toSorted((a, b) => b.length - a.length)[0]
}
