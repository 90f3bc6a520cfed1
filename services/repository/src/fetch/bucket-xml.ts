/** Reads the XML of stores of objects: elements without attributes, and texts with entities. */

const ENTITIES: Readonly<Record<string, string>> = {
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  amp: '&',
}

/** Finds the text of the first element of a name, with its entities decoded; '' if there is none. */
export function readTag(xml: string, name: string): string {
  const text = readElements(xml, name)[0] ?? ''
  return text.replaceAll(/&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|([a-z]+));/gi, toCharacter)
}

/** Lists the contents of all elements of a name; entities stay encoded. */
export function readElements(xml: string, name: string): readonly string[] {
  const parts = xml.split(`<${name}>`).slice(1)
  return parts.flatMap((part) => {
    const end = part.indexOf(`</${name}>`)
    return end < 0 ? [] : [part.slice(0, end)]
  })
}

function toCharacter(entity: string, decimal?: string, hex?: string, name?: string): string {
  if (name !== undefined) return ENTITIES[name] ?? entity
  const code = decimal === undefined ? Number.parseInt(hex ?? '', 16) : Number(decimal)
  return code <= 0x10_ffff ? String.fromCodePoint(code) : entity
}
