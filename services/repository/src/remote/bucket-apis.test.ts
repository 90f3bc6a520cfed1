import { systemClock } from '@tutti/chassis'
import t from 'tap'
import { asApi } from './as-api.ts'
import { gsApi } from './gs-api.ts'

const gs = gsApi({ bucket: 'b', endpoint: undefined, token: () => Promise.resolve(undefined) })
const as = asApi('c', { account: 'name', clock: systemClock })

const blob = (name: string, more: string) =>
  `<Blob><Name>${name}</Name><Properties><Etag>0x1</Etag><Content-Length>0</Content-Length>${more}</Blob>`
const refusal = (code: string) =>
  `<Error><Code>${code}</Code><Message>No.\nTime:1</Message></Error>`

await t.test('requests go to the clouds unless the settings name another server', async (t) => {
  const { url } = gs.page({ prefix: 'a b/', token: '', isFolders: true })
  t.equal(
    url.href,
    'https://storage.googleapis.com/storage/v1/b/b/o?prefix=a%20b%2F&delimiter=%2F&fields=nextPageToken,prefixes',
  )
  const object = { key: 'm/a+b?.bin', tag: '17', sizeBytes: 1 }
  t.match(gs.object(object).url.href, /\/o\/m%2Fa%2Bb%3F\.bin\?alt=media&generation=17$/)
  t.match(as.object(object), {
    url: /^https:\/\/name\.blob\.core\.windows\.net\/c\/m\/a%2Bb%3F\.bin$/,
    headers: { 'if-match': '"17"' },
  })
  const headers = await as.sign({ url: new URL('https://name.blob.core.windows.net/c') })
  t.same(Object.keys(headers).toSorted(), ['x-ms-date', 'x-ms-version'], 'without a key')
})

await t.test('objects that come otherwise than they are listed are refused', (t) => {
  const item = { name: 'm/labels.txt', size: '3', generation: '1', contentEncoding: 'gzip' }
  t.throws(() => gs.toPage(JSON.stringify({ items: [item] })), {
    reason: 'ARTIFACT_INVALID',
    message: /m\/labels\.txt.*it is stored with Content-Encoding gzip$/,
  })
  t.throws(() => gs.toPage('{"items":[{"name":"x","size":"-1"}]}'), {
    message: /its size is "-1"$/,
  })
  t.end()
})

await t.test('folders of a hierarchical namespace are folders', (t) => {
  const blobs = [
    blob('m/1', '<ResourceType>directory</ResourceType></Properties>'),
    blob('m/2', '</Properties><Metadata><hdi_isfolder>true</hdi_isfolder></Metadata>'),
    blob('m/3', '<ResourceType>file</ResourceType></Properties>'),
  ]
  const page = as.toPage(
    `<EnumerationResults><Blobs>${blobs.join('')}</Blobs><NextMarker /></EnumerationResults>`,
  )
  t.same(
    page?.objects.map(({ key }) => key),
    ['m/1/', 'm/2/', 'm/3'],
  )
  t.equal(page?.next, '')
  t.end()
})

await t.test('a container that needs credentials is denied, whatever the status', (t) => {
  t.same(as.toRefusal(refusal('PublicAccessNotPermitted'), {}), {
    detail: 'PublicAccessNotPermitted: No.',
    isDenied: true,
  })
  t.same(as.toRefusal(refusal('ServerBusy'), {}), { detail: 'ServerBusy: No.', isDenied: false })
  t.same(gs.toRefusal('Not Found', {}), { detail: '', isDenied: false })
  t.end()
})
