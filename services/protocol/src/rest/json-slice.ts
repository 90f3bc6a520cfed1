import { assert } from '@tutti/errors'

/*
 * Finds the text of a member or element in a document that JSON.parse has accepted already, so that only the part that
 * needs exact numbers is parsed again with access to its source: a reviver over a whole document of floats costs
 * about ten times the plain parse.
 */

/** Finds the text of the first member `name` of the object in `text`; undefined if there is none. */
export function memberText(text: string, name: string): string | undefined {
  for (const [key, value] of memberTexts(text)) if (key === name) return value
  return undefined
}

/** Yields name and text of each member of the object in `text`, in order; nothing if `text` is no object. */
export function* memberTexts(text: string): Generator<readonly [string, string]> {
  let at = skipBlanks(text, 0)
  if (text[at] !== '{') return
  at = skipBlanks(text, at + 1)
  while (text[at] !== '}') {
    const keyEnd = skipValue(text, at)
    const start = skipBlanks(text, skipBlanks(text, keyEnd) + 1)
    const end = skipValue(text, start)
    yield [String(JSON.parse(text.slice(at, keyEnd))), text.slice(start, end)]
    at = nextEntry(text, end)
  }
}

/** Finds the texts of all elements of the array in `text`; undefined if `text` is no array. */
export function elementTexts(text: string): readonly string[] | undefined {
  let at = skipBlanks(text, 0)
  if (text[at] !== '[') return undefined
  at = skipBlanks(text, at + 1)
  const texts: string[] = []
  while (text[at] !== ']') {
    const end = skipValue(text, at)
    texts.push(text.slice(at, end))
    at = nextEntry(text, end)
  }
  return texts
}

function nextEntry(text: string, valueEnd: number): number {
  const at = skipBlanks(text, valueEnd)
  return text[at] === ',' ? skipBlanks(text, at + 1) : at
}

function skipBlanks(text: string, start: number): number {
  let at = start
  while (isBlank(text.charCodeAt(at))) at += 1
  assert(at < text.length, 'sliced JSON text ends early')
  return at
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09
}

/** Finds the index after the value that starts at `start`. */
function skipValue(text: string, start: number): number {
  const first = text[start]
  if (first === '"') return skipString(text, start)
  if (first !== '{' && first !== '[') return skipScalar(text, start)
  let depth = 0
  for (let at = start; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === 0x22) at = skipString(text, at) - 1
    else if (code === 0x7b || code === 0x5b) depth += 1
    else if (code === 0x7d || code === 0x5d) {
      depth -= 1
      if (depth === 0) return at + 1
    }
  }
  return text.length
}

function skipString(text: string, start: number): number {
  let at = start + 1
  while (at < text.length && text.charCodeAt(at) !== 0x22) {
    at += text.charCodeAt(at) === 0x5c ? 2 : 1
  }
  return at + 1
}

function skipScalar(text: string, start: number): number {
  let at = start
  while (at < text.length && !isBlank(text.charCodeAt(at)) && !',]}'.includes(text[at] ?? '')) {
    at += 1
  }
  return at
}
