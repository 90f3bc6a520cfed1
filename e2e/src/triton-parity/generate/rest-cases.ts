import { deflateSync, gzipSync } from 'node:zlib'
import type { Random } from '../../attacks/random.ts'
import type { Call, RestCall } from '../case.ts'
import { toBytes } from './grpc-cases.ts'
import { DECOUPLED, MODELS, NO_MODELS, VERSIONS } from './models.ts'
import { mutated } from './mutations.ts'
import {
  anyModel,
  type Element,
  type InferParts,
  type InputPart,
  type Parameters,
  validParts,
} from './parts.ts'

/** Numbers beyond 2^53 are written as they are. */
function toJson(value: unknown): string {
  return JSON.stringify(value).replaceAll(/"#(-?\d+)"/g, '$1')
}

/** Marks text that is to be written as a number. */
function jsonElement(datatype: string, element: Element): unknown {
  return datatype !== 'BYTES' && typeof element === 'string' && /^-?\d+$/.test(element)
    ? `#${element}`
    : element
}

function toParameters(parameters: Parameters): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(parameters).map(([key, { kind, value }]) => [
      key,
      kind === 'string' || typeof value !== 'string' ? value : `#${value}`,
    ]),
  )
}

function nested(data: readonly unknown[], shape: readonly number[]): unknown {
  if (shape.length <= 1) return data
  const [, ...inner] = shape
  const size = inner.reduce((product, extent) => product * extent, 1)
  const count = size === 0 ? 0 : data.length / size
  return Array.from({ length: count }, (_, i) =>
    nested(data.slice(i * size, (i + 1) * size), inner),
  )
}

interface RestForm {
  readonly json: Record<string, unknown>
  readonly binary: Buffer
}

function toInput(input: InputPart, isBinary: boolean, isNested: boolean): Record<string, unknown> {
  const { name, datatype, shape, parameters } = input
  const extents = shape.map((extent) => (typeof extent === 'string' ? `#${extent}` : extent))
  const data = input.data.map((element) => jsonElement(datatype, element))
  const size = toBytes(datatype, input.data).byteLength
  const all = { ...toParameters(parameters), ...(isBinary && { binary_data_size: size }) }
  return {
    name,
    datatype,
    shape: extents,
    ...(Object.keys(all).length > 0 && { parameters: all }),
    ...(!isBinary && { data: isNested ? nested(data, shape.map(Number)) : data }),
  }
}

function toForm(parts: InferParts, { chance }: Random): RestForm {
  const isNested = chance(0.4)
  // FP16 has no form in JSON.
  const isBinary = parts.inputs.map(
    ({ datatype }) => chance(0.25) || (datatype === 'FP16' && chance(0.8)),
  )
  const parameters = {
    ...toParameters(parts.parameters),
    ...(chance(0.15) && { binary_data_output: chance(0.8) }),
  }
  return {
    json: {
      ...(parts.id !== '' && { id: parts.id }),
      ...(Object.keys(parameters).length > 0 && { parameters }),
      inputs: parts.inputs.map((input, i) => toInput(input, isBinary[i] === true, isNested)),
      ...(parts.outputs.length > 0 && {
        outputs: parts.outputs.map(({ name, parameters: own }) => ({
          name,
          ...((Object.keys(own).length > 0 || chance(0.2)) && {
            parameters: { ...toParameters(own), ...(chance(0.5) && { binary_data: chance(0.7) }) },
          }),
        })),
      }),
    },
    binary: Buffer.concat(
      parts.inputs.map(({ datatype, data }, i) =>
        isBinary[i] === true ? toBytes(datatype, data) : Buffer.alloc(0),
      ),
    ),
  }
}

const WRONG = [5, 'text', true, null, [], {}, 1.5, -1, '#99999999999999999999'] as const

/** Puts a value of another kind, or nothing, where the protocol wants one. */
function damagedJson(json: Record<string, unknown>, { oneOf }: Random): Record<string, unknown> {
  const wrong: unknown = oneOf(WRONG)
  const inputs = Array.isArray(json['inputs']) ? json['inputs'].map(Object) : []
  const [first, ...rest] = inputs
  const change = (key: string, value: unknown): Record<string, unknown> => ({
    ...json,
    inputs: [{ ...first, [key]: value }, ...rest],
  })
  return oneOf([
    () => ({ ...json, inputs: wrong }),
    () => ({ ...json, outputs: wrong }),
    () => ({ ...json, parameters: wrong }),
    () => ({ ...json, id: wrong }),
    () => ({ ...json, more: wrong }),
    () => ({ ...json, inputs: [wrong, ...rest] }),
    () => ({ ...json, outputs: [wrong] }),
    () => change('name', wrong),
    () => change('datatype', wrong),
    () => change('shape', wrong),
    () => change('shape', [wrong]),
    () => change('data', wrong),
    () => change('data', [wrong]),
    () => change('data', [[wrong, 1], [2]]),
    () => change('parameters', wrong),
    () => change('parameters', { binary_data_size: wrong }),
    () => change('parameters', { custom: wrong }),
    () => change(oneOf(['name', 'datatype', 'shape', 'data']), undefined),
    () => change('more', wrong),
    () => ({ ...json, outputs: [{ name: 'Y', parameters: { binary_data: wrong } }] }),
    () => ({ ...json, outputs: [{ name: 'Y', parameters: { classification: wrong } }] }),
    () => ({ ...json, outputs: [{ parameters: {} }] }),
  ])()
}

const TEXTS = [
  '',
  '{',
  '[]',
  'null',
  '5',
  '"x"',
  '{}',
  '{"inputs":[]}',
  '{"inputs":[{}]}',
  '{"inputs":[{}],}',
  '{"id":"a"} x',
  '\u0000',
  '{"inputs":NaN}',
] as const

/** A JSON part cut off, followed by garbage, or something else. */
function damagedText(text: string, { oneOf, pick, chance }: Random): string {
  return oneOf([
    () => oneOf(TEXTS),
    () => text.slice(0, pick(text.length)),
    () => `${text}x`,
    () => `  ${text}\n`,
    () =>
      text.replace(
        /"data":\[/,
        `"data":[${oneOf(['NaN', 'Infinity', '-Infinity', '1e400', '1.0', '-0', '01', '+1'])}${chance(0.5) ? ',' : ''}`,
      ),
    () => text.replace(/"inputs"/, '"inputs":[],"inputs"'),
  ])()
}

const WEIGHTS = [
  '0',
  '0.0',
  '0.1',
  '0.5',
  '.5',
  '1',
  '1.000',
  '2',
  '-1',
  'x',
  '',
  '1e-1',
  '0.3x',
] as const

/** Chooses the encodings that a client takes: some that there are and others, with weights and without. */
function acceptedEncodings({ oneOf, chance, pick }: Random): string {
  const items = Array.from({ length: 1 + pick(4) }, () => {
    const name = oneOf(['gzip', 'gzip', 'deflate', 'deflate', 'identity', 'br', '*', ''])
    const parameter = chance(0.1) ? ';level=1' : ''
    return `${name}${parameter}${chance(0.5) ? `;q=${oneOf(WEIGHTS)}` : ''}`
  })
  return items.join(oneOf([',', ', ', ' , ']))
}

function toCall(path: string, form: RestForm, text: string, random: Random): RestCall {
  const { chance, oneOf } = random
  const bytes = Buffer.from(text)
  const hasLength = form.binary.byteLength > 0 || chance(0.05)
  const length = chance(0.06)
    ? oneOf(['0', '-1', 'x', '5', '99999', '', '1.5', '18446744073709551616'])
    : String(bytes.byteLength)
  const headers: Record<string, string> = {
    ...(hasLength && { 'inference-header-content-length': length }),
    ...(chance(0.3) && {
      'content-type': oneOf([
        'application/json',
        'text/plain',
        'application/octet-stream',
        'application/x-www-form-urlencoded',
      ]),
    }),
    ...(chance(0.08) && { 'accept-encoding': acceptedEncodings(random) }),
  }
  const whole = Buffer.concat([bytes, form.binary])
  if (chance(0.05)) {
    const encoding = oneOf(['gzip', 'deflate', 'br', 'identity', 'gzip2'])
    const packed =
      encoding === 'gzip' ? gzipSync(whole) : encoding === 'deflate' ? deflateSync(whole) : whole
    const sent = chance(0.2) ? packed.subarray(0, -4) : packed
    return {
      method: 'POST',
      path,
      headers: { ...headers, 'content-encoding': encoding },
      base64: sent.toString('base64'),
    }
  }
  return form.binary.byteLength > 0
    ? { method: 'POST', path, headers, base64: whole.toString('base64') }
    : { method: 'POST', path, headers, body: text }
}

function modelPath(name: string, version: string): string {
  return `/v2/models/${encodeURIComponent(name)}${version === '' ? '' : `/versions/${encodeURIComponent(version)}`}`
}

/** POST .../infer, as JSON or with binary tensors. */
export function restInferCase(random: Random): readonly Call[] {
  const { chance } = random
  const parts = validParts(anyModel(random), random)
  const asked = chance(0.55) ? mutated(parts, random) : parts
  const form = toForm(asked, random)
  const json = chance(0.2) ? damagedJson(form.json, random) : form.json
  const text = chance(0.08) ? damagedText(toJson(json), random) : toJson(json)
  return [toCall(`${modelPath(asked.model, asked.version)}/infer`, { ...form, json }, text, random)]
}

/** A request whose body is the bytes of one input. */
export function rawBodyCase(random: Random): readonly Call[] {
  const { oneOf, pick, chance } = random
  const model = oneOf(MODELS)
  const parts = validParts(model, random)
  const data = parts.inputs.map(({ datatype, data: items }) => toBytes(datatype, items))
  const whole = chance(0.7) ? Buffer.concat(data) : random.bytes(pick(40))
  const headers = { 'inference-header-content-length': '0' }
  return [
    {
      method: 'POST',
      path: `${modelPath(model.name, '')}/infer`,
      headers,
      base64: whole.toString('base64'),
    },
  ]
}

const METHODS = ['GET', 'GET', 'GET', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH'] as const
const PATHS = [
  '/v2',
  '/v2/',
  '/',
  '/v1',
  '/v2/health/live',
  '/v2/health/ready',
  '/v2/health',
  '/v2/health/live/',
  '/v2/models',
  '/v2/models/',
  '/v2/models/stats',
  '/v2/models//infer',
  '/v2/repository',
  '/v2/repository/index',
  '/v2/repository/x/index',
  '/v2//health/live',
  '/V2',
  '/v2?x=1',
  '/v2/health/live?x=1',
  '/metrics',
  '/v2/models/batch?x=1',
] as const
const ENDINGS = [
  '',
  '/',
  '/ready',
  '/config',
  '/stats',
  '/infer',
  '/versions',
  '/versions/',
  '/nope',
  '/ready/',
  '/metadata',
] as const

/** Every path with every method, there or not. */
export function restPathCase(random: Random): readonly Call[] {
  const { oneOf, chance } = random
  const names = [...MODELS, ...DECOUPLED].map(({ name }) => name)
  const name = chance(0.8) ? oneOf(names) : oneOf(NO_MODELS)
  const path = chance(0.4)
    ? oneOf(PATHS)
    : `${modelPath(name, chance(0.4) ? oneOf(VERSIONS) : '')}${oneOf(ENDINGS)}`
  const isIndex = path.endsWith('/index')
  const method = isIndex && chance(0.7) ? 'POST' : oneOf(METHODS)
  const body = isIndex
    ? oneOf(['', '{}', '{"ready":true}', '{"ready":false}', '{"ready":5}', '{', '[]', 'null'])
    : oneOf(['', '', '', '{}', 'x'])
  return [{ method, path, ...(method !== 'GET' && { body }) }]
}
