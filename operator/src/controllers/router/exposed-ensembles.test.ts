import { SECRET } from '@tutti/kube'
import t from 'tap'
import { memoryClient } from '../../testing/memory-client.ts'
import { type EdgeToken, readEdgeToken } from './exposed-ensembles.ts'

const NAMESPACE = 'team'

/** What an Ensemble gets that names the Secret `keys`, which holds this. */
function read(data: Readonly<Record<string, string>> | undefined): Promise<EdgeToken> {
  const client = memoryClient()
  const metadata = { namespace: NAMESPACE, name: 'keys' }
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata }
  const encoded = Object.entries(data ?? {}).map(([key, value]) => [key, btoa(value)] as const)
  if (data !== undefined) client.put(SECRET, { ...secret, data: Object.fromEntries(encoded) })
  const expose = { auth: { secretRef: { name: 'keys' } } }
  return readEdgeToken(client, {
    namespace: NAMESPACE,
    expose,
    signal: new AbortController().signal,
  })
}

await t.test('a token is what the Secret holds, without its end of line', async (t) => {
  t.same(await read({ token: 's3cret\n' }), { kind: 'token', token: 's3cret' })
})

const WANTED = ', want one of printable ASCII without spaces'
for (const [name, data, told] of [
  ['no Secret', undefined, 'is not there'],
  ['no key', { other: 'x' }, `has no key token${WANTED}`],
  ['an empty key', { token: ' \n' }, `has a key token that is empty${WANTED}`],
  ['a space', { token: 'a b' }, `has a key token that no header can carry${WANTED}`],
] as const) {
  await t.test(`${name} is told`, async (t) => {
    const message = `expose.auth.secretRef.name: Secret "keys" ${told}`
    t.same(await read(data), { kind: 'missing', message })
  })
}
