import { DATATYPES, isDatatype } from '@tutti/tensor'
import { z } from 'zod'
import { cel, celPattern, listAtomic, mapOf, text, told } from './cel.ts'

/*
 * Fields that several kinds share. Every one is bounded: the API server estimates what a rule may cost by the bounds.
 */

const NAME_LENGTH = 253

/** @param want - the pattern in words. */
function nameField(max: number, pattern: RegExp, want: string) {
  return (description: string) => text({ min: 1, max, pattern, want }).describe(description)
}

/** Makes a field for a served name, which clients call a model by, in Triton's character set. */
export const servedName = nameField(
  NAME_LENGTH,
  /^[A-Za-z0-9_][A-Za-z0-9_.:+@-]*$/,
  'letters, digits and _.:+@-, beginning with a letter, a digit or _',
)

/** The pattern of a DNS subdomain. */
export const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/

/** Makes a field for the name of another object, which is a DNS subdomain. */
export const objectName = nameField(NAME_LENGTH, SUBDOMAIN, 'a DNS subdomain: a-z, 0-9, - and .')

/** Makes a field for a DNS label. */
export const dnsLabel = nameField(
  63,
  /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/,
  'a DNS label: a-z, 0-9 and -',
)

/** Makes a field for the name of a tensor of a model or an ensemble: any text without control characters. */
export const tensorName = nameField(
  256,
  /^\P{Cc}+$/u,
  'one character at least, and such as can be printed',
)

export const Datatype = z
  .enum(Object.keys(DATATYPES).filter(isDatatype))
  .describe('Datatype of the v2 protocol. BYTES is what config.pbtxt calls TYPE_STRING.')

/** The shape of a tensor without the batch dimension, as in Triton. An extent of -1 stands for any. */
export const TensorShape = cel(
  listAtomic(z.int().min(-1).max(2_147_483_647), { min: 1, max: 32 }).describe(
    'Extents without the batch dimension, outermost first; -1 for any.',
  ),
  {
    rule: 'self.all(extent, extent != 0)',
    message: 'want extents of at least 1, or -1 for any',
  },
)

/** Units in milliseconds. */
const UNITS = new Map([
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
  ['ms', 1],
  ['us', 1e-3],
])

/** The value of a duration field that leaves the duration to Tutti. */
export const AUTO = 'auto'

/** @param allowsAuto - AUTO is allowed in place of a duration. */
function durationField(pattern: RegExp, examples: string, allowsAuto = false) {
  const auto = allowsAuto ? `'${AUTO}', or ` : ''
  const want = `${auto}a duration above 0, e.g. ${examples}`
  const schema = text({
    max: 24,
    ofNumber: (value) =>
      value > 0 && pattern.test(`${value}s`)
        ? `got ${value}, want a duration with its unit, such as ${value}s or ${value}ms`
        : `got ${value}, want ${want}`,
    // Editors read the pattern. Tutti and the API server find it in the rule.
  }).meta({ pattern: pattern.source })
  return (description: string) =>
    cel(schema.describe(description), {
      rule: `self.matches(${celPattern(pattern)}) && (${allowsAuto ? `self == '${AUTO}' || ` : ''}duration(self) > duration('0s'))`,
      message: `want ${want}`,
      messageExpression: `"got '" + self + "', want ${want}"`,
    })
}

/** A duration as Gateway API writes it. */
export const DURATION = /^([0-9]{1,5}(h|m|s|ms)){1,4}$/

/** Makes a field for a duration above zero, as Gateway API writes it. */
export const duration = durationField(DURATION, '500ms, 2s or 1m30s')

/** Makes a field for a duration above zero, down to microseconds, or AUTO. */
export const fineDurationOrAuto = durationField(
  /^(auto|([0-9]{1,5}(h|m|s|ms|us)){1,4})$/,
  '100us, 5ms or 1s',
  true,
)

/**
 * Converts a duration to milliseconds.
 *
 * @param value - as `duration` and `fineDurationOrAuto` accept it.
 * @returns 0 for AUTO and for any other text.
 */
export function toMilliseconds(value: string): number {
  const parts = value.matchAll(/([0-9]+)(h|ms|m|us|s)/g)
  return [...parts].reduce(
    (sum, [, digits, unit]) => sum + Number(digits) * (UNITS.get(unit ?? '') ?? 0),
    0,
  )
}

export const SecretRef = z.strictObject({
  name: objectName('Name of a Secret in the namespace of the resource.'),
})
export type SecretRef = z.infer<typeof SecretRef>

const QUALIFIED_NAME =
  /^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/
/** The pattern of a label's value. It does not check the length, which is at most 63 characters. */
export const LABEL_VALUE = /^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$/

/** Tells whether a key of labels, annotations or resources is valid in Kubernetes, with or without a prefix. */
export function isQualifiedName(key: string): boolean {
  return key.length <= 317 && key.lastIndexOf('/') <= 253 && QUALIFIED_NAME.test(key)
}

type AnyMap = Readonly<Record<string, unknown>>

const QUALIFIED = {
  text: (value: AnyMap) => {
    const key = Object.keys(value).find((name) => !isQualifiedName(name))
    return `got the key '${key}', want [PREFIX/]NAME as Kubernetes has it`
  },
  holds: (value: AnyMap) => Object.keys(value).every(isQualifiedName),
}

/** `isQualifiedName` in CEL. */
const IS_QUALIFIED = `key.size() <= 317 && key.lastIndexOf('/') <= 253 && key.matches(${celPattern(QUALIFIED_NAME)})`

/** Demands that keys are qualified names, as Kubernetes does for labels and annotations. */
function withQualifiedKeys<T extends z.ZodType<AnyMap>>(map: T): T {
  return cel(map, {
    rule: `self.all(key, ${IS_QUALIFIED})`,
    message: 'want keys of the form [PREFIX/]NAME as Kubernetes has them',
    messageExpression: `"got the key '" + self.filter(key, !(${IS_QUALIFIED}))[0] + "', want [PREFIX/]NAME as Kubernetes has it"`,
  })
}

/** Makes a field for labels that a user may choose. */
export function labels(description: string) {
  const value = text({
    max: 63,
    pattern: LABEL_VALUE,
    want: 'letters, digits and -_., beginning and ending with a letter or a digit',
  })
  return withQualifiedKeys(mapOf(value, { max: 32 })).describe(description)
}

/** Bytes that Kubernetes takes of an object's annotations in all, 256 KiB, less 1 KiB for what the operator adds. */
const ANNOTATION_BYTES = 262_144 - 1024

const SIZE = 'self.map(key, bytes(key).size() + bytes(self[key]).size()).sum()'

/** Makes a field for annotations that a user may choose, with room left for those of the operator. */
export function annotations(description: string) {
  const map = withQualifiedKeys(mapOf(text({ max: 8192 }), { max: 32 }))
  return cel(map, {
    rule: `${SIZE} <= ${ANNOTATION_BYTES}`,
    message: `want at most ${ANNOTATION_BYTES} bytes in keys and values together`,
    ownMessageExpression: `'got ' + string(${SIZE}) + ' bytes in keys and values together, want at most ${ANNOTATION_BYTES}'`,
  }).describe(description)
}

/** Counts the bytes of keys and values in UTF-8, as the API server does. */
export function bytesOf(map: Readonly<Record<string, string>>): number {
  const encoder = new TextEncoder()
  return Object.entries(map)
    .flat()
    .reduce((sum, one) => sum + encoder.encode(one).length, 0)
}

/** Makes a field for a whole number from `min` to `max`. */
export function whole(min: number, max: number, description: string) {
  return z.int().min(min).max(max).describe(description)
}

/** Makes a field for a whole number, or for a share as text, e.g. `25%`. */
export function countOrShare(description: string) {
  return z
    .union([
      z.int().min(0).max(10_000),
      text({
        max: 4,
        pattern: /^([0-9]|[1-9][0-9]|100)%$/,
        want: 'a whole number or a share, e.g. 25%',
      }),
    ])
    .meta({ 'x-kubernetes-int-or-string': true })
    .describe(description)
}

const QUANTITY = /^([0-9]+)(\.[0-9]+)?([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$/

/**
 * Defines a quantity of Kubernetes: text, or a number as YAML makes it of `0.5`. CRDs have no type for both, so CEL does not see
 * it.
 *
 * @param o.min - least number. The API server holds no text against it.
 */
function quantityOf(o: { readonly min: number }) {
  return z
    .union([
      z.number().min(o.min).max(Number.MAX_SAFE_INTEGER),
      text({ min: 1, max: 32, pattern: QUANTITY, want: 'a quantity, e.g. 500m or 4Gi' }),
    ])
    .meta({ 'x-kubernetes-preserve-unknown-fields': true })
}

/** A resource quantity, e.g. `500m`, `0.5` or `4Gi`. */
export const Quantity = quantityOf({ min: 0 }).describe(
  'A quantity of Kubernetes, e.g. 500m, 0.5 or 4Gi.',
)
export type Quantity = z.infer<typeof Quantity>

/** Makes a field for a map from names of resources to quantities. */
export function quantities(description: string) {
  const map = mapOf(Quantity, { max: 16 })
  return told<typeof map>(map, QUALIFIED).describe(description)
}

const LEAST_BYTES = 1

/** Makes a field for bytes, as a number or as a quantity such as 2Gi. */
export function bytes(description: string) {
  const field = quantityOf({ min: LEAST_BYTES })
  return told<typeof field>(field, {
    text: (value) => `got ${value}, want ${LEAST_BYTES} to ${Number.MAX_SAFE_INTEGER} bytes`,
    // A text that is no quantity is told by the pattern.
    holds: (value) => {
      const count = toBytes(value)
      return count === undefined || (count >= LEAST_BYTES && count <= Number.MAX_SAFE_INTEGER)
    },
  }).describe(description)
}

/** Powers of 1000 of a suffix, and of 1024 of one with i. */
const POWERS = new Map(
  [...['n', 'u', 'm', '', 'k', 'M', 'G', 'T', 'P', 'E'].entries()].map(([i, suffix]) => [
    suffix,
    i - 3,
  ]),
)

/**
 * Converts a quantity to bytes, rounded up to whole bytes as Kubernetes does.
 *
 * @returns undefined for text that is no quantity.
 */
export function toBytes(value: Quantity): number | undefined {
  const amount = toAmount(value)
  return amount && Math.ceil(amount)
}

/** Converts a quantity to a number, e.g. `500m` of CPU to 0.5 cores. @returns undefined for text that is no quantity. */
export function toAmount(value: Quantity): number | undefined {
  if (typeof value === 'number') return value
  const [, integer, fraction = '', suffix = ''] = QUANTITY.exec(value) ?? []
  if (integer === undefined) return undefined
  const number = Number(`${integer}${fraction}`)
  if (/[0-9]$/.test(suffix)) return Number(`${integer}${fraction}${suffix}`)
  const [base, unit] = suffix.endsWith('i') ? [1024, suffix.slice(0, 1)] : [1000, suffix]
  const power = POWERS.get(unit === 'K' ? 'k' : unit) ?? 0
  return power < 0 ? number / base ** -power : number * base ** power
}
