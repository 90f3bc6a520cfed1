import t from 'tap'
import { decodeText, failureOf } from './testing/rest-fixtures.ts'

await t.test('names of numbers are read as Triton reads them, though JSON has none', async (t) => {
  const text = String.raw`{"id":"NaN\"Infinity","parameters":{"p":NaN,"q":-Infinity},"inputs":[
    {"name":"x","datatype":"FP32","shape":[4],"data":[NaN,[Infinity,-Inf],1]}]}`
  const { context, inputs } = decodeText(text)
  t.equal(context.id, 'NaN"Infinity')
  t.same(
    [...context.parameters],
    [
      ['p', { kind: 'double', value: Number.NaN }],
      ['q', { kind: 'double', value: -Infinity }],
    ],
  )
  const { data } = inputs[0] ?? { data: new Uint8Array() }
  t.same([...new Float32Array(new Uint8Array(data).buffer)], [Number.NaN, Infinity, -Infinity, 1])
  const integers = '{"inputs":[{"name":"x","datatype":"INT32","shape":[2],"data":[NaN,1]}]}'
  const rows = [
    [integers, "Unable to parse 'data': attempt to access JSON non-signed-integer"],
    ['NaN', "Unable to parse 'inputs': attempt to access non-existing object member"],
    ['[NaNx]', 'failed to parse the request JSON buffer: Invalid value.'],
    ['[NaN, null]', 'failed to parse the request JSON buffer: Invalid value.'],
  ] as const
  for (const [body, message] of rows) {
    t.match(
      failureOf(() => decodeText(body)),
      { code: 'INTERNAL', message },
    )
  }
})

await t.test('a byte order mark before a document is no content, as in Triton', async (t) => {
  const text = '{"id":"a","parameters":{"p":NaN,"q":1,"q":2},"inputs":[]}'
  const { context } = decodeText(`\uFEFF${text}`)
  t.same(context, decodeText(text).context)
  const twice = failureOf(() => decodeText(`\uFEFF\uFEFF${text}`))
  t.match(twice, { message: 'failed to parse the request JSON buffer: Invalid value. at 0' })
})

await t.test('of members with one name the first one counts, as in Triton', async (t) => {
  const input = `{"name":"x","datatype":"INT64","shape":[1],"data":[5],"data":[7],"more":{"a":1,"a":2}}`
  const text = `{"parameters":{"p":1,"p":2.5},"parameters":{"p":3},"inputs":[${input}],"inputs":[]}`
  const { context, inputs } = decodeText(text)
  t.same([...context.parameters], [['p', { kind: 'int64', value: 1n }]])
  t.same(
    inputs.map(({ data }) => new BigInt64Array(new Uint8Array(data).buffer)[0]),
    [5n],
  )
  const many = `{${'"a":1,'.repeat(2 ** 18)}"inputs":[${input}]}`
  t.match(
    failureOf(() => decodeText(many)),
    { reason: 'MESSAGE_TOO_LARGE', message: /members of the same name holds 262153 members/ },
  )
})
