import * as fc from 'fast-check'
import t from 'tap'
import { digestOf, isSameJson, toCanonicalJson } from './canonical.ts'
import { LruMap } from './lru-map.ts'
import { isOlderVersion } from './resource-version.ts'

await t.test('equal values have one text, whatever the order of their keys', async (t) => {
  t.equal(toCanonicalJson({ b: [{ d: 1, c: 2 }], a: undefined }), '{"b":[{"c":2,"d":1}]}')
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const text = JSON.stringify(value)
      return JSON.stringify(JSON.parse(toCanonicalJson(value))).length === text.length
    }),
  )
  fc.assert(
    fc.property(fc.object(), (value) => {
      const turned = Object.fromEntries(Object.entries(value).toReversed())
      return digestOf(value) === digestOf(turned)
    }),
  )
  t.not(digestOf({ a: [1, 2] }), digestOf({ a: [2, 1] }))
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.string(), (key, text) => {
      return toCanonicalJson({ [key]: text }) === JSON.stringify({ [key]: text })
    }),
  )
  for (const text of [
    '"',
    '\\',
    '\n',
    '\u001f',
    '\u007f',
    '\u2028',
    '\ud800',
    '\ud83d\ude00',
    '',
  ]) {
    t.equal(toCanonicalJson([text, { [text]: text }]), JSON.stringify([text, { [text]: text }]))
  }
})

await t.test('what has one canonical text is the same, and nothing else', async (t) => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (one, other) => {
      const isSame = toCanonicalJson(one) === toCanonicalJson(other)
      return isSameJson(one, other) === isSame && isSameJson(one, structuredClone(one))
    }),
  )
  t.ok(isSameJson({ a: 1, b: undefined }, { a: 1 }))
  t.ok(isSameJson([undefined], [null]))
  for (const [one, other] of [
    [{ a: 1 }, { b: 1 }],
    [{ toString: 1 }, {}],
    [{}, []],
    [[1], [1, 2]],
    [null, {}],
    [1, '1'],
  ]) {
    t.notOk(isSameJson(one, other))
    t.notOk(isSameJson(other, one))
  }
})

await t.test('versions are compared as numbers of any length', async (t) => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n }), fc.bigInt({ min: 0n }), (one, other) => {
      return isOlderVersion(String(one), String(other)) === one < other
    }),
  )
  t.equal(isOlderVersion('a', '1'), false)
  t.equal(isOlderVersion('1', ''), false)
})

await t.test('the map drops what was used least recently', async (t) => {
  const map = new LruMap<number>(2)
  map.set('a', 1)
  map.set('b', 2)
  map.get('a')
  map.set('c', 3)
  t.same([map.get('a'), map.get('b'), map.get('c')], [1, undefined, 3])
})
