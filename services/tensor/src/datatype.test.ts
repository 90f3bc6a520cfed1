import t from 'tap'
import { DATATYPES, fromConfigDatatype, isDatatype } from './tensor.ts'

await t.test('datatypes have the numbers of model_config.proto, 1 to 14', async (t) => {
  const numbers = Object.values(DATATYPES).map((row) => row.number)
  t.same(
    numbers,
    Array.from({ length: 14 }, (_, i) => i + 1),
  )
})

await t.test('an item is as large as its name says, BYTES has no size', async (t) => {
  for (const [name, { itemSize }] of Object.entries(DATATYPES)) {
    const bits = /(\d+)$/.exec(name)?.[1]
    const expected = bits === undefined ? (name === 'BOOL' ? 1 : null) : Number(bits) / 8
    t.equal(itemSize, expected, name)
  }
})

await t.test('config names lead back to the datatype', async (t) => {
  for (const [name, { config }] of Object.entries(DATATYPES)) {
    t.equal(fromConfigDatatype(config), name)
  }
  t.equal(fromConfigDatatype('TYPE_STRING'), 'BYTES')
  for (const text of ['TYPE_INVALID', 'FP32', '', 'toString']) {
    t.equal(fromConfigDatatype(text), undefined, text)
  }
})

await t.test('only names of the protocol are datatypes', async (t) => {
  t.ok(isDatatype('FP16'))
  for (const text of ['TYPE_FP16', 'fp16', 'STRING', '', 'constructor', '__proto__']) {
    t.notOk(isDatatype(text), text)
  }
})
