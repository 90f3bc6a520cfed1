/** The little of XML that S3's answers are made of: elements without attributes, texts with the five entities. */

const ENTITIES: Readonly<Record<string, string>> = {
  '&lt;': '<',
  '&gt;': '>',
  '&quot;': '"',
  '&apos;': "'",
  '&amp;': '&',
}

/** The text of the first element of the name; '' if there is none. */
export function readTag(xml: string, name: string): string {
  const from = xml.indexOf(`<${name}>`)
  const to = xml.indexOf(`</${name}>`, from)
  if (from < 0 || to < 0) return ''
  return unescapeText(xml.slice(from + name.length + 2, to))
}

/** The insides of all elements of the name, as they are. */
export function readElements(xml: string, name: string): readonly string[] {
  const elements: string[] = []
  const [open, close] = [`<${name}>`, `</${name}>`]
  for (let at = xml.indexOf(open); at >= 0; ) {
    const end = xml.indexOf(close, at)
    if (end < 0) break
    elements.push(xml.slice(at + open.length, end))
    at = xml.indexOf(open, end)
  }
  return elements
}

function unescapeText(text: string): string {
  return text.replaceAll(/&(?:lt|gt|quot|apos|amp|#\d{1,7}|#x[0-9a-fA-F]{1,6});/g, (entity) => {
    const known = ENTITIES[entity]
    if (known !== undefined) return known
    const digits = entity.slice(entity[2] === 'x' ? 3 : 2, -1)
    const code = Number.parseInt(digits, entity[2] === 'x' ? 16 : 10)
    return code <= 0x10_ffff ? String.fromCodePoint(code) : entity
  })
}
