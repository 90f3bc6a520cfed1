import { hash } from 'node:crypto'

/** Characters that JSON writes in another way; surrogates only where they are alone. */
// oxlint-disable-next-line no-control-regex -- JSON escapes them
const SPECIAL = /["\\\u0000-\u001f\ud800-\udfff]/

/** The same few names, again and again, as JSON writes them before their values. */
const names = new Map<string, string>()
const MOST_NAMES = 4096

/**
 * Writes JSON with sorted object keys, so that equal values give equal text. Members that are undefined are left out. It is
 * written by hand because it takes most of a pass without changes; JSON.stringify of a sorted copy takes half as long again.
 *
 * @param value - a JSON value or undefined.
 */
export function toCanonicalJson(value: unknown): string {
  if (typeof value === 'string') return toText(value)
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  if (Array.isArray(value)) return `[${value.map(toCanonicalJson).join()}]`
  const keys = Object.keys(value)
  if (!isSorted(keys)) keys.sort()
  let text = ''
  for (const key of keys) {
    const part: unknown = Reflect.get(value, key)
    if (part === undefined) continue
    text += `${text === '' ? '' : ','}${toName(key)}${toCanonicalJson(part)}`
  }
  return `{${text}}`
}

function toText(text: string): string {
  return SPECIAL.test(text) ? JSON.stringify(text) : `"${text}"`
}

/** Tells whether keys are in order. The API server sends fields in order, and most manifests are built in order. */
function isSorted(keys: readonly string[]): boolean {
  return keys.every((key, i) => i === 0 || (keys[i - 1] ?? '') < key)
}

function toName(key: string): string {
  const known = names.get(key)
  if (known !== undefined) return known
  const name = `${toText(key)}:`
  if (names.size === MOST_NAMES) names.clear()
  names.set(key, name)
  return name
}

const DIGEST_BYTES = 16

/** Returns the digest of a value's canonical JSON: the first 16 bytes of its SHA-256, as 32 hex digits. */
export function digestOf(value: unknown): string {
  // Not cut out of a longer text, which each of ten thousand digests would keep.
  return hash('sha256', toCanonicalJson(value), 'buffer').toString('hex', 0, DIGEST_BYTES)
}

/** True if two values have the same canonical JSON. It compares the values and writes no text. */
export function isSameJson(one: unknown, other: unknown): boolean {
  if (one === other) return true
  if (typeof one !== 'object' || typeof other !== 'object') return false
  if (one === null || other === null) return false
  if (Array.isArray(one) || Array.isArray(other)) return isSameList(one, other)
  // Members that are in both are compared once.
  const isMore = Object.keys(other).some((name) => isMember(other, name) && !isMember(one, name))
  return !isMore && Object.keys(one).every((name) => isSameMember(one, other, name))
}

function isSameList(one: unknown, other: unknown): boolean {
  if (!Array.isArray(one) || !Array.isArray(other) || one.length !== other.length) return false
  return one.every((element, i) => isSameJson(element ?? null, other[i] ?? null))
}

function isSameMember(one: object, other: object, name: string): boolean {
  const isIn = isMember(one, name)
  if (isIn !== isMember(other, name)) return false
  return !isIn || isSameJson(Reflect.get(one, name), Reflect.get(other, name))
}

/** Tells whether a name is an object's own member: a label may be `toString`. */
function isMember(object: object, name: string): boolean {
  return Object.hasOwn(object, name) && Reflect.get(object, name) !== undefined
}
