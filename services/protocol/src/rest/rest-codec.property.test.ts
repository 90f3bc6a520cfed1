import { ServeError } from '@tutti/errors'
import { DATATYPES, type Datatype, encodeBytesTensor, type NamedTensor } from '@tutti/tensor'
import * as fc from 'fast-check'
import t from 'tap'
import { decodeRestRequest } from './decode-request.ts'
import { encodeRestResponse } from './encode-response.ts'
import { elementTexts, memberText } from './json-slice.ts'
import { modelConfig } from './testing/rest-fixtures.ts'

const shapes = fc.array(fc.integer({ min: 0, max: 4 }), { maxLength: 3 })

function withBytes(
  datatype: Datatype,
  name: string,
  shape: readonly number[],
): fc.Arbitrary<NamedTensor> {
  const count = shape.reduce((product, extent) => product * extent, 1)
  const exactly = { minLength: count, maxLength: count }
  const make = (data: Uint8Array): NamedTensor => ({ name, datatype, shape, data })
  if (datatype === 'BYTES') {
    return fc
      .array(fc.string({ unit: 'grapheme' }), exactly)
      .map((texts) => make(encodeBytesTensor(texts.map((text) => Buffer.from(text)))))
  }
  if (datatype === 'BOOL') {
    return fc.array(fc.constantFrom(0, 1), exactly).map((bits) => make(Uint8Array.from(bits)))
  }
  if (datatype === 'FP32' || datatype === 'FP64') {
    const number = { noNaN: true, noDefaultInfinity: true }
    return datatype === 'FP32'
      ? fc
          .float32Array({ ...exactly, ...number })
          .map((a) => make(new Uint8Array(a.slice().buffer)))
      : fc
          .float64Array({ ...exactly, ...number })
          .map((a) => make(new Uint8Array(a.slice().buffer)))
  }
  const size = count * (DATATYPES[datatype].itemSize ?? 0)
  return fc.uint8Array({ minLength: size, maxLength: size }).map((data) => make(data))
}

function tensors(datatypes: readonly Datatype[]): fc.Arbitrary<NamedTensor[]> {
  const one = fc
    .tuple(fc.constantFrom(...datatypes), fc.string(), shapes)
    .chain(([datatype, name, shape]) => withBytes(datatype, name, shape))
  return fc.uniqueArray(one, { maxLength: 4, selector: (tensor) => tensor.name })
}

const ALL = Object.keys(DATATYPES).filter((name): name is Datatype => name in DATATYPES)
const IN_JSON: readonly Datatype[] = ALL.filter(
  (datatype) => datatype !== 'FP16' && datatype !== 'BF16',
)

/** Encodes a response and decodes it as a request: both have the same form but for the member's name. */
function roundTrip(
  sent: readonly NamedTensor[],
  isBinary: (name: string) => boolean,
): readonly NamedTensor[] {
  const steps = encodeRestResponse(
    { modelName: 'm', modelVersion: '1', id: 'i', parameters: new Map(), outputs: sent },
    isBinary,
  )
  let step = steps.next()
  while (step.done !== true) step = steps.next()
  const { parts, headers } = step.value
  const whole = Buffer.concat(parts)
  const written = headers['inference-header-content-length']
  const length = written === undefined ? whole.byteLength : Number(written)
  const json = Buffer.from(whole.subarray(0, length).toString().replace('"outputs":', '"inputs":'))
  const body = Buffer.concat([json, whole.subarray(length)])
  return decodeRestRequest({
    body,
    headerLength: String(json.byteLength),
    modelName: 'm',
    config: modelConfig(),
  }).inputs
}

function plain(tensor: NamedTensor): unknown {
  return { ...tensor, data: [...tensor.data] }
}

await t.test('any tensors survive JSON', async (t) => {
  fc.assert(
    fc.property(tensors(IN_JSON), (sent) => {
      t.same(roundTrip(sent, () => false).map(plain), sent.map(plain))
    }),
    { numRuns: 300 },
  )
})

await t.test('any tensors survive binary data, mixed with JSON', async (t) => {
  fc.assert(
    fc.property(tensors(ALL), fc.nat(), (sent, mask) => {
      const binary = new Set(
        sent
          .filter(({ datatype }, i) => !IN_JSON.includes(datatype) || (mask >> i) % 2 === 1)
          .map(({ name }) => name),
      )
      t.same(roundTrip(sent, (name) => binary.has(name)).map(plain), sent.map(plain))
    }),
    { numRuns: 300 },
  )
})

await t.test('slices of a document parse to what the document holds', async (t) => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.nat(3), (document, indent) => {
      const text = ` ${JSON.stringify(document, undefined, indent)}\n`
      for (const [key, value] of Object.entries(document)) {
        const slice = memberText(text, key) ?? ''
        t.equal(JSON.stringify(JSON.parse(slice)), JSON.stringify(value))
      }
      t.equal(memberText(text, 'no such member \u0000'), undefined)
      const values = Object.values(document)
      const list = JSON.stringify(values, undefined, indent)
      const slices = elementTexts(list)?.map((slice) => JSON.stringify(JSON.parse(slice)))
      t.same(
        slices,
        values.map((value) => JSON.stringify(value)),
      )
    }),
    { numRuns: 200 },
  )
  t.equal(memberText('{"a":1,"a":2}', 'a'), '1', 'the first one wins, as in Triton')
  t.equal(memberText(String.raw`{"\u0061":3}`, 'a'), '3')
  t.equal(memberText('[1]', 'a'), undefined)
  t.equal(elementTexts('{"a":1}'), undefined)
})

const SEED = Buffer.from(
  '{"id":"r","parameters":{"priority":1,"p":"x"},"inputs":[' +
    '{"name":"x","datatype":"INT64","shape":[2],"data":[9007199254740993,[1]]},' +
    '{"name":"s","datatype":"BYTES","shape":[1],"data":["t"]},' +
    '{"name":"b","datatype":"FP32","shape":[1],"parameters":{"binary_data_size":4}}],' +
    '"outputs":[{"name":"y","parameters":{"binary_data":true,"classification":1}}]}abcd',
)

await t.test('no body makes anything but a request or a typed error', async (t) => {
  const mutations = fc.array(
    fc.tuple(fc.nat(SEED.byteLength), fc.nat(12), fc.uint8Array({ maxLength: 8 })),
    { minLength: 1, maxLength: 4 },
  )
  const mutated = mutations.map((edits) =>
    edits.reduce<Buffer>(
      (bytes, [at, cut, put]) =>
        Buffer.concat([bytes.subarray(0, at), put, bytes.subarray(at + cut)]),
      SEED,
    ),
  )
  const structured = fc
    .jsonValue()
    .map((value) =>
      Buffer.from(JSON.stringify({ inputs: [value], outputs: [value], parameters: value })),
    )
  const bodies = fc.oneof(mutated, structured, fc.uint8Array({ maxLength: 200 }))
  const headers = fc.option(
    fc.oneof(fc.constant(String(SEED.byteLength - 4)), fc.string(), fc.nat(600).map(String)),
    { nil: undefined },
  )
  let refused = 0
  fc.assert(
    fc.property(bodies, headers, (body, headerLength) => {
      try {
        decodeRestRequest({
          body,
          modelName: 'm',
          config: modelConfig(),
          ...(headerLength === undefined ? {} : { headerLength }),
        })
      } catch (error) {
        refused += 1
        if (!(error instanceof ServeError)) throw error
        if (error.reason === 'INTERNAL') throw error
      }
    }),
    { numRuns: 500 },
  )
  t.ok(refused > 0)
})
