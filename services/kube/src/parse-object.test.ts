import t from 'tap'
import { CONFIG_MAP } from './kinds/core.ts'
import { toList, toStored } from './parse-object.ts'

const META = { name: 'a', uid: 'u', resourceVersion: '1', creationTimestamp: 'now' }

await t.test('an object is taken as it is, with fields that our types lack', async (t) => {
  const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: META, color: 'blue' }
  t.equal(toStored(object, '/x'), object)
})

await t.test('a value that is not an object is an error that shows the value', async (t) => {
  for (const odd of [undefined, null, 'x', [], {}, { metadata: {} }, { metadata: { name: 'a' } }]) {
    t.throws(() => toStored(odd, '/x'), /^\/x: got .*, want an object with name and uid$/)
    t.throws(() => toList(odd, CONFIG_MAP, '/x'), /^\/x: got .*, want a list$/)
  }
})

await t.test('the items of a list get the type that the server leaves out', async (t) => {
  const metadata = { resourceVersion: '7', continue: 'token' }
  const page = toList({ metadata, items: [{ metadata: META }] }, CONFIG_MAP, '/x')
  t.match(page, { resourceVersion: '7', next: 'token' })
  t.match(page.items, [{ apiVersion: 'v1', kind: 'ConfigMap' }])
  const none = toList({ metadata: { resourceVersion: '7' }, items: null }, CONFIG_MAP, '/x')
  t.same(none, { items: [], resourceVersion: '7', next: '' })
  t.throws(() => toList({ metadata, items: [5] }, CONFIG_MAP, '/x'), /got 5, want an object/)
})
