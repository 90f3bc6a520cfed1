import { silentLogger } from '@tutti/chassis'
import type { Secret } from '@tutti/kube'
import * as fc from 'fast-check'
import t from 'tap'
import { EdgeSecret, type SecretListener } from './edge-secret.ts'

const routeOf = (model: string, revision?: string) => ({
  hosts: ['a.example'],
  models: [model],
  ...(revision !== undefined && { revision }),
})

function secretOf(text: string): Secret {
  const metadata = { name: 'edge', namespace: 'team' }
  const data = { 'edge.json': Buffer.from(text).toString('base64') }
  return { apiVersion: 'v1', kind: 'Secret', metadata, data }
}

/** The routes of a watch that the test scripts. */
function open() {
  const told: SecretListener[] = []
  const edge = new EdgeSecret({
    watch: (listener) => {
      told.push(listener)
      return { close: async () => {} }
    },
    log: silentLogger,
  })
  const [listener] = told
  const tell = (type: 'added' | 'updated' | 'deleted', text: string): void =>
    listener?.onEvent({ type, object: secretOf(text) })
  return { edge, tell, synced: () => listener?.onSynced() }
}

await t.test('nobody gets in before the Secret is there, and nobody once it is gone', async (t) => {
  const { edge, tell, synced } = open()
  t.same([edge.access, edge.hasSynced], [{ routes: [] }, false])
  synced()
  t.same([edge.access, edge.hasSynced], [{ routes: [] }, true], 'it is not there')
  const text = JSON.stringify({ routes: [routeOf('one', 'r1'), routeOf('two')] })
  tell('added', text)
  t.match(edge.access.routes, [{ models: ['one'] }, { models: ['two'] }])
  t.same(edge.revisions, ['r1'])
  t.equal(edge.access, edge.access, 'the same object while nothing changes')
  tell('deleted', text)
  t.same([edge.access, edge.revisions], [{ routes: [] }, []])
})

await t.test('a change counts at once, one that cannot be read changes nothing', async (t) => {
  const { edge, tell } = open()
  tell('added', JSON.stringify({ routes: [routeOf('one', 'r1')] }))
  const bad = ['', '[]', '{}', JSON.stringify({ routes: [{ ...routeOf('two'), mirror: true }] })]
  for (const text of bad) {
    tell('updated', text)
    t.same(edge.revisions, ['r1'], text)
  }
  tell('updated', JSON.stringify({ routes: [routeOf('one', 'r2')] }))
  t.same(edge.revisions, ['r2'])
})

await t.test('whatever the Secret holds, it is taken or leaves what was there', async (t) => {
  const { edge, tell } = open()
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(fc.oneof(fc.json(), fc.string()), (text) => {
        const before = edge.access
        tell('updated', text)
        return edge.access === before || Array.isArray(edge.access.routes)
      }),
      { numRuns: 300 },
    ),
  )
})
