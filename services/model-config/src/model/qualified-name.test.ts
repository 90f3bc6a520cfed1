import * as fc from 'fast-check'
import t from 'tap'
import { plainName, qualifyName, resolveName, splitName } from './qualified-name.ts'

const A = '/models/a'
const B = 's3://bucket/b'

await t.test('a name is qualified by its repository', (t) => {
  const cases: readonly (readonly [string, ReturnType<typeof splitName>])[] = [
    ['m', undefined],
    ['', undefined],
    // A name of a model, which may have the separator and no slash.
    ['a::b', undefined],
    ['::', undefined],
    [`${A}::m`, { namespace: A, name: 'm' }],
    [`${A}::a::b`, { namespace: A, name: 'a::b' }],
    [`${B}::m`, { namespace: B, name: 'm' }],
  ]
  for (const [name, want] of cases) {
    t.same(splitName(name), want, name)
    t.equal(plainName(name), want?.name ?? name)
    if (want !== undefined) t.equal(qualifyName(want.namespace, want.name), name)
  }
  t.end()
})

await t.test('what a model means by a name', (t) => {
  const cases: readonly (readonly [from: string, among: readonly string[], want: string])[] = [
    [A, [], 'm'],
    [A, [A], `${A}::m`],
    [A, [B], `${B}::m`],
    [A, [B, A], `${A}::m`],
    ['/models/c', [B, A], 'm'],
  ]
  for (const [from, among, want] of cases) {
    const qualified = among.map((namespace) => qualifyName(namespace, 'm'))
    t.equal(resolveName(qualified, from, 'm'), want, `${from} among ${among.join(', ')}`)
  }
  t.end()
})

await t.test('whatever repositories and models are called', (t) => {
  const name = fc.stringMatching(/^[A-Za-z0-9_.:-]{1,8}$/)
  const namespace = name.map((folder) => `/${folder.replaceAll(':', '_')}`)
  fc.assert(
    fc.property(namespace, fc.uniqueArray(namespace, { maxLength: 4 }), name, (own, all, model) => {
      const qualified = all.map((one) => qualifyName(one, model))
      for (const one of qualified) {
        t.equal(qualifyName(splitName(one)?.namespace ?? '', plainName(one)), one)
      }
      const got = resolveName(qualified, own, model)
      const isOwn = all.includes(own)
      const isKnown = isOwn || all.length === 1
      t.equal(qualified.includes(got), isKnown)
      t.equal(plainName(got), model)
      if (isOwn) t.equal(splitName(got)?.namespace, own)
    }),
    { numRuns: 100 },
  )
  t.end()
})
