import { decodeRestRequest, encodeRestResponse } from '@tutti/protocol'
import t from 'tap'
import { inferBytes, inferJson, parseAnswer } from './infer-body.ts'
import type { RequestInput } from './request-input.ts'

const source = { file: 'b', skip: 0, isElement: false, isMade: false }
const INPUTS: readonly RequestInput[] = [
  {
    name: 'a"',
    datatype: 'INT64',
    shape: [1],
    content: { kind: 'json', text: '[9007199254740993]' },
  },
  {
    name: 'b',
    datatype: 'UINT8',
    shape: [3],
    content: { kind: 'bytes', data: Uint8Array.of(1, 2, 3), source },
  },
]

await t.test('the server reads the request that the page writes', async (t) => {
  const json = inferJson(INPUTS, true)
  const body = Buffer.concat([Buffer.from(json), ...inferBytes(INPUTS)])
  const headerLength = String(Buffer.byteLength(json))
  const request = decodeRestRequest({ body, headerLength, modelName: 'm', config: {} as never })
  t.ok(request.isBinaryOutput)
  t.same(
    request.inputs.map(({ name, data }) => [name, [...data]]),
    [
      ['a"', [1, 0, 0, 0, 0, 0, 0x20, 0]],
      ['b', [1, 2, 3]],
    ],
  )
})

await t.test('the page reads the answer that the server writes', async (t) => {
  const outputs = [
    { name: 'y', datatype: 'UINT8', shape: [2], data: Uint8Array.of(7, 8) },
    { name: 'z', datatype: 'BYTES', shape: [1], data: Uint8Array.of(1, 0, 0, 0, 65) },
  ] as const
  const answer = { modelName: 'm', modelVersion: '3', id: '', parameters: new Map(), outputs }
  const parts = encodeRestResponse(answer, () => true, new Set())
  const pieces: Uint8Array[] = []
  for (;;) {
    const next = parts.next()
    if (next.done === true) {
      const body = Buffer.concat(next.value.parts)
      const length = next.value.headers['inference-header-content-length']
      const read = parseAnswer(body, String(length))
      t.equal(read.modelVersion, '3')
      t.same(
        read.outputs.map(({ name, data }) => [name, [...data]]),
        [
          ['y', [7, 8]],
          ['z', [1, 0, 0, 0, 65]],
        ],
      )
      break
    }
    pieces.push(next.value)
  }
})

await t.test('what is no answer of the protocol is an error', async (t) => {
  for (const text of ['', '<html>', '{}', '{"model_name":"m","outputs":[{"name":"y"}]}']) {
    t.throws(() => parseAnswer(Buffer.from(text), null), text)
  }
  const short = { name: 'y', datatype: 'UINT8', shape: [9], parameters: { binary_data_size: 9 } }
  const json = JSON.stringify({ model_name: 'm', outputs: [short] })
  t.throws(() => parseAnswer(Buffer.from(json), String(json.length)), /'y' of UINT8 has 0 bytes/)
})
