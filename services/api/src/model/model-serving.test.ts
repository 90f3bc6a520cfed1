import t from 'tap'
import { StorageUri } from './model-serving.ts'

const messagesOf = (uri: string): readonly string[] =>
  StorageUri.safeParse(uri).error?.issues.map(({ message }) => message) ?? []

await t.test('an address with a user is refused without being shown', (t) => {
  const addresses = [
    'https://me:hidden@x/y.tar',
    'https://me:hidden@x/../y.tar',
    'oci://robot:hidden@r.example/a/b:1',
    'hf://me:hidden@owner/name',
    's3://key:hidden@bucket/x',
    'gs://key:hidden@bucket/x',
    'as://key:hidden@account/container',
    'image://me:hidden@r.example:5000/a/b:1/x',
    'image://me:hidden@r.example/a/../x',
  ]
  for (const storageUri of addresses) {
    const messages = messagesOf(storageUri)
    t.match(messages, [/^got a user in the address/], storageUri)
    t.notMatch(messages.join(' '), /hidden/, storageUri)
  }
  const hex = '0f'.repeat(32)
  for (const image of [`a@sha256:${hex}`, `a:22@sha256:${hex}`, `r.b:5000/a/c:1@sha256:${hex}`]) {
    t.same(messagesOf(`image://${image}/x/y`), [], image)
  }
  t.same(messagesOf(`oci://r.b:5000/a:1@sha256:${hex}/x`), [])
  t.same(messagesOf('hf://owner/name@v1/x@y'), [])
  t.end()
})
