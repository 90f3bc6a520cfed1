import * as fc from 'fast-check'
import t from 'tap'
import { measureJson, parseBoundedJson } from './bounded-json.ts'

const PARSED = JSON.parse

/** Counts calls of JSON.parse. */
function parse(text: string, maxValues: number) {
  let calls = 0
  JSON.parse = (given: string) => {
    calls += 1
    return PARSED(given)
  }
  try {
    return { value: parseBoundedJson(Buffer.from(text), maxValues), calls }
  } catch (error) {
    return { error: Object(error), calls }
  } finally {
    JSON.parse = PARSED
  }
}

await t.test('JSON within the bound is what JSON.parse makes of it', async (t) => {
  const property = fc.property(fc.json(), (text) => {
    const value = parseBoundedJson(Buffer.from(text), 2 ** 20)
    t.same(value, PARSED(text))
  })
  t.doesNotThrow(() => fc.assert(property))
  const bytes = Buffer.from('..{"a":1}..')
  t.same(parseBoundedJson(bytes.subarray(2, -2), 10), { a: 1 }, 'of a view too')
})

await t.test('no value is left out of the count', async (t) => {
  const property = fc.property(fc.jsonValue(), (value) => {
    const { containers, commas } = measureJson(Buffer.from(JSON.stringify(value)))
    const counted = containers + commas
    t.ok(counted >= valuesIn(value) - 1 && counted < 2 * valuesIn(value), JSON.stringify(value))
  })
  t.doesNotThrow(() => fc.assert(property))
})

function valuesIn(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1
  return Object.values(value).reduce<number>((sum, inner) => sum + valuesIn(inner), 1)
}

await t.test('what holds too much is refused before it is parsed', async (t) => {
  const floods = [
    `[${'0,'.repeat(1000)}0]`,
    `[${'{},'.repeat(500)}{}]`,
    `{"a":[${'"",'.repeat(1000)}""]}`,
    `{${'"a":1,'.repeat(1000)}"a":1}`,
    ','.repeat(1001),
  ]
  for (const text of floods) {
    const { error, calls } = parse(text, 1000)
    t.match(
      error,
      { reason: 'MESSAGE_TOO_LARGE', message: /^JSON of more than 1000 values$/ },
      text.slice(0, 20),
    )
    t.equal(calls, 0)
  }
  t.match(parse(`["${'\\",[{'.repeat(1000)}"]`, 1), { calls: 1, value: [/^",\[\{/] })
})

await t.test('what nests too deeply is refused before it is parsed', async (t) => {
  for (const open of ['[', '{"a":']) {
    const { error, calls } = parse(open.repeat(1_000_000), 2 ** 30)
    t.match(error, { reason: 'MALFORMED_MESSAGE', message: 'JSON that nests more than 128' })
    t.equal(calls, 0)
  }
  t.match(parse('['.repeat(128) + ']'.repeat(128), 1000), { calls: 1 })
})

await t.test('what is no JSON is refused without its bytes', async (t) => {
  for (const text of ['', 'secret', '[1', '{"a"}', '1 2', '[}', ']']) {
    const { error } = parse(text, 10)
    t.match(error, { reason: 'MALFORMED_MESSAGE', message: /^no JSON$/ }, text)
  }
})
