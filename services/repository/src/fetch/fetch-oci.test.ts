import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { type Clock, SecretText, systemClock } from '@tutti/chassis'
import t, { type Test } from 'tap'
import { type Answer, answerStatus, startArtifactServer } from '../testing/artifact-server.ts'
import { serveRange } from '../testing/scripted-hub.ts'
import { type TarEntry, tarArchive } from '../testing/tar-archive.ts'
import { type FetchRequest, fetchArtifact } from './fetch-artifact.ts'
import { parseImageAddress } from './image-address.ts'

const LAYER = 'application/vnd.oci.image.layer.v1.tar'
const MODEL: readonly TarEntry[] = [
  { name: 'config.pbtxt', data: 'backend: "b"' },
  { name: '1/', type: '5' },
  { name: '1/model.bin', data: 'weights'.repeat(100_000) },
]
const clock: Clock = {
  ...systemClock,
  setTimer: (_, callback) => systemClock.setTimer(0, callback),
}
const digestOf = (bytes: string | Uint8Array): string =>
  `sha256:${createHash('sha256').update(bytes).digest('hex')}`
const platform = (name: string) => ({ os: 'linux', architecture: name })
const basicOf = (pair: string): string => `Basic ${Buffer.from(pair).toString('base64')}`

interface Layer {
  readonly bytes: string | Uint8Array
  readonly mediaType?: string
  readonly annotations?: Readonly<Record<string, string>>
}
const titled = (title: string, bytes: string, mediaType = LAYER): Layer => ({
  bytes,
  mediaType,
  annotations: { 'org.opencontainers.image.title': title },
})
const tar = (...entries: readonly TarEntry[]): Layer => ({ bytes: tarArchive(entries) })

/** A registry, with the server of its tokens, whose manifests and blobs a test writes. */
async function prepare(
  t: Test,
  o: { readonly password?: string; readonly isBasic?: boolean } = {},
) {
  const content = new Map<string, string | Uint8Array>()
  const faults: Answer[] = []
  const tokens = await startArtifactServer(({ headers }, response) => {
    const isRight = o.password === undefined || headers.authorization === basicOf(o.password)
    if (isRight) return response.end(JSON.stringify({ token: 'for-minutes' }))
    const errors = [{ code: 'UNAUTHORIZED', message: 'wrong password' }]
    return response.writeHead(401).end(JSON.stringify({ errors }))
  })
  t.teardown(() => tokens.close())
  const isOpen = ({ headers: { authorization } }: IncomingMessage): boolean => {
    if (o.isBasic === true) return authorization === basicOf(o.password ?? '')
    return o.password === undefined || authorization === 'Bearer for-minutes'
  }
  const registry = await startArtifactServer((request, response) => {
    const path = request.url ?? ''
    if (!isOpen(request)) {
      const bearer = `Bearer realm="${tokens.origin}/token",service="registry",scope="repository:models/yolo:pull"`
      const challenge = o.isBasic === true ? 'Basic realm="registry"' : bearer
      return response.writeHead(401, { 'www-authenticate': challenge }).end('{}')
    }
    const fault = path.includes('/blobs/') ? faults.shift() : undefined
    if (fault !== undefined) return fault(request, response)
    const bytes = content.get(path.replace('/v2/models/yolo/', ''))
    if (bytes !== undefined) return serveRange(request, response, Buffer.from(bytes))
    const errors = [{ code: 'MANIFEST_UNKNOWN', message: 'manifest unknown' }]
    return response.writeHead(404).end(JSON.stringify({ errors }))
  })
  t.teardown(() => registry.close())
  const host = registry.origin.replace('http://', '')
  const putManifest = (manifest: object, tag?: string) => {
    const text = JSON.stringify(manifest)
    const digest = digestOf(text)
    for (const name of [digest, ...(tag === undefined ? [] : [tag])]) {
      content.set(`manifests/${name}`, text)
    }
    return { digest, size: text.length, mediaType: 'application/vnd.oci.image.manifest.v1+json' }
  }
  const push = (layers: readonly Layer[], tag = 'one') => {
    const described = layers.map(({ bytes, mediaType = LAYER, annotations }) => {
      content.set(`blobs/${digestOf(bytes)}`, bytes)
      return { mediaType, digest: digestOf(bytes), size: Buffer.byteLength(bytes), annotations }
    })
    return putManifest({ schemaVersion: 2, layers: described }, tag)
  }
  const to = join(t.testdir(), 'model')
  const { signal } = new AbortController()
  const fetched = (more: Partial<FetchRequest> & { readonly at?: string } = {}) => {
    const uri = `oci://${host}/models/yolo${more.at ?? ':one'}`
    return fetchArtifact({ uri, to, clock, signal, ...more })
  }
  const failure = async (more: Parameters<typeof fetched>[0] = {}): Promise<unknown> =>
    fetched(more).then(
      () => t.fail('it was fetched'),
      (error: unknown) => error,
    )
  const files = async () => {
    const entries = await readdir(to, { recursive: true, withFileTypes: true })
    const found = entries.filter((entry) => entry.isFile())
    return found.map((entry) => join(entry.parentPath, entry.name).slice(to.length + 1)).toSorted()
  }
  const text = async (name: string) => await readFile(join(to, name), 'utf8')
  return {
    registry,
    tokens,
    host,
    content,
    faults,
    push,
    putManifest,
    to,
    fetched,
    failure,
    files,
    text,
  }
}

await t.test('addresses', (t) => {
  const hex = `sha256:${'0f'.repeat(32)}`
  const cases: readonly (readonly [string, object | undefined])[] = [
    [
      'ghcr.io/owner/model:1',
      { host: 'ghcr.io', repository: 'owner/model', reference: '1', path: '' },
    ],
    [`r.example:5000/a/b:1@${hex}/x/y/`, { repository: 'a/b', reference: hex, path: 'x/y' }],
    [
      'docker.io/library/a:1',
      { host: 'docker.io', registry: new URL('https://registry-1.docker.io') },
    ],
    ['localhost:5000/a:1', { registry: new URL('http://localhost:5000') }],
    ['[::1]:5000/a:1', { registry: new URL('http://[::1]:5000') }],
    ['127.0.0.1.example.com/a:1', { registry: new URL('https://127.0.0.1.example.com') }],
    ['r.example/a', undefined],
    ['r.example:5000/a/b', undefined],
    ['a:1', undefined],
    ['r.example/A:1', undefined],
    ['r.example/../a:1', undefined],
    ['me:pass@r.example/a:1', undefined],
    ['r.example/a@sha256:0', undefined],
  ]
  for (const [text, wanted] of cases) {
    if (wanted === undefined) t.equal(parseImageAddress(text), undefined, text)
    else t.match(parseImageAddress(text), wanted, text)
  }
  t.end()
})

await t.test('layers of files and archives become a model', async (t) => {
  const { registry, push, fetched, files, text } = await prepare(t)
  const { digest: manifest } = push([
    titled('config.pbtxt', 'backend: "b"'),
    titled('1/model.bin', 'weights'),
    titled('2/model.bin', 'weights'),
    {
      bytes: gzipSync(tarArchive([{ name: '3/model.bin', data: 'third' }])),
      mediaType: `${LAYER}+gzip`,
    },
    { bytes: '{}', mediaType: 'application/vnd.oci.empty.v1+json' },
  ])
  const { digest, ...found } = await fetched()
  t.same(found, { files: 4, bytes: 31, isFetched: true })
  t.same(await files(), ['1/model.bin', '2/model.bin', '3/model.bin', 'config.pbtxt'])
  t.equal(await text('2/model.bin'), 'weights')
  const blobs = registry.heard.filter(({ path }) => path.includes('/blobs/'))
  t.equal(blobs.length, 3, 'equal layers are fetched once')
  const asked = registry.heard.length
  t.match(await fetched(), { isFetched: false }, 'the tag is at the same manifest')
  t.equal(registry.heard.length, asked + 1)
  t.match(await fetched({ digest }), { isFetched: false })
  t.equal(registry.heard.length, asked + 1)
  t.match(await fetched({ at: `@${manifest}` }), { isFetched: true })
})

await t.test('what oras packs of a folder, and a folder of an image', async (t) => {
  const { push, fetched, files } = await prepare(t)
  const folder = tarArchive(MODEL.map((entry) => ({ ...entry, name: `yolo/${entry.name}` })))
  const annotations = {
    'org.opencontainers.image.title': 'yolo',
    'io.deis.oras.content.unpack': 'true',
  }
  push([{ bytes: gzipSync(folder), mediaType: `${LAYER}+gzip`, annotations }])
  await fetched()
  t.same(await files(), ['1/model.bin', 'config.pbtxt'])
  push([
    tar({ name: 'bin/sh', data: 'x' }, { name: 'etc/mtab', type: '2', link: '/proc/mounts' }),
    tar(...MODEL.map((entry) => ({ ...entry, name: `models/yolo/${entry.name}` }))),
    tar({ name: 'models/.wh.other', data: '' }, { name: 'models/yolo/labels.txt', data: 'cat' }),
  ])
  await fetched({ at: ':one/models/yolo' })
  t.same(await files(), ['1/model.bin', 'config.pbtxt', 'labels.txt'])
})

await t.test('a layer that deletes the model, or a folder around it, is refused', async (t) => {
  const { push, fetched, failure } = await prepare(t)
  const model = tar(...MODEL.map((entry) => ({ ...entry, name: `models/yolo/${entry.name}` })))
  const marks = {
    'models/.wh.yolo': true,
    'models/.wh..wh..opq': true,
    './.wh.models': true,
    '.wh..wh..opq': true,
    'models/yolo/.wh.labels.txt': true,
    'models/yolo/.wh..wh..opq': true,
    'models/yolo/1/.wh.old': true,
    'models/.wh.yolo2': false,
    'models/.wh.yol': false,
    'models/other/.wh..wh..opq': false,
    '.wh.bin': false,
  }
  for (const [name, isRefused] of Object.entries(marks)) {
    push([model, tar({ name, data: '' })])
    const at = ':one/models/yolo'
    if (isRefused) {
      const message = /a layer deletes files by it/
      t.match(await failure({ at }), { reason: 'ARTIFACT_INVALID', message }, name)
    } else t.match(await fetched({ at }), { files: 2 }, name)
  }
})

await t.test('a path that no layer has is named', async (t) => {
  const { push, failure } = await prepare(t)
  push([tar(...MODEL.map((entry) => ({ ...entry, name: `models/yolo/${entry.name}` })))])
  t.match(await failure({ at: ':one/models/yola' }), {
    reason: 'ARTIFACT_NOT_FOUND',
    message: /the layers have no files below 'models\/yola'$/,
  })
  push([tar({ name: 'empty/', type: '5' })])
  t.match(await failure(), { reason: 'ARTIFACT_NOT_FOUND', message: /the layers have no files$/ })
})

await t.test('of an index, the image of this machine', async (t) => {
  const { push, putManifest, fetched, failure, files } = await prepare(t)
  const architecture = process.arch === 'x64' ? 'amd64' : process.arch
  const own = push([tar(...MODEL)], 'own')
  const other = push([tar({ name: 'other', data: 'x' })], 'other')
  const manifests = [
    { ...other, platform: platform('s390x') },
    { ...own, platform: platform(architecture) },
  ]
  putManifest({ schemaVersion: 2, manifests }, 'both')
  await fetched({ at: ':both' })
  t.same(await files(), ['1/model.bin', 'config.pbtxt'])
  putManifest({ schemaVersion: 2, manifests: manifests.slice(0, 1) }, 'single')
  await fetched({ at: ':single' })
  t.same(await files(), ['other'])
  putManifest({ manifests: [manifests[0], { ...other, platform: platform('ppc64le') }] }, 'foreign')
  t.match(await failure({ at: ':foreign' }), {
    reason: 'ARTIFACT_NOT_FOUND',
    message: /^the index has linux\/s390x, linux\/ppc64le, want linux\//,
  })
})

await t.test('a registry that wants a token, or a password, gets what it asks for', async (t) => {
  const authorization = new SecretText(basicOf('me:hidden'))
  for (const isBasic of [false, true]) {
    const o = await prepare(t, { password: 'me:hidden', isBasic })
    o.push([tar(...MODEL)])
    t.match(await o.fetched({ credentials: { authorization } }), { isFetched: true })
    t.equal(o.registry.heard[0]?.headers.authorization, undefined, 'nothing goes unasked')
    t.equal(o.tokens.heard.length, isBasic ? 0 : 1, 'one token for all')
    if (!isBasic) {
      t.equal(
        o.tokens.heard[0]?.path,
        '/token?scope=repository%3Amodels%2Fyolo%3Apull&service=registry',
      )
    }
    const byHost = new Map([[o.host, authorization]])
    const again = { uri: `oci://${o.host}/models/yolo:one`, credentials: { registries: byHost } }
    t.match(await o.fetched(again), { isFetched: false })
    const none = new SecretText(basicOf('me:none'))
    const byPath = new Map([
      [o.host, none],
      [`${o.host}/models`, authorization],
      [`${o.host}/models/yo`, none],
      [`${o.host}/mod`, none],
    ])
    t.match(await o.fetched({ credentials: { registries: byPath } }), { isFetched: false })
    const others = new Map([
      ['other.example', authorization],
      [`${o.host}/models/yolo/x`, authorization],
    ])
    t.match(await o.failure({ credentials: { registries: others } }), {
      reason: 'ARTIFACT_DENIED',
      message: /answered 401.* \(asked without credentials, none were found for localhost:\d+\)$/,
    })
    const wrong = { authorization: new SecretText(basicOf('me:wrong')) }
    t.match(await o.failure({ credentials: wrong }), { reason: 'ARTIFACT_DENIED' })
  }
  const bearer = await prepare(t, { password: 'me:hidden' })
  bearer.push([tar(...MODEL)])
  const token = new SecretText('Bearer for-minutes')
  t.match(await bearer.fetched({ credentials: { authorization: token } }), { isFetched: true })
  t.equal(bearer.tokens.heard.length, 0)
})

await t.test('a cut blob goes on, and one with another digest is refused', async (t) => {
  const { registry, faults, push, fetched, failure, files, content } = await prepare(t)
  push([tar(...MODEL)])
  faults.push((request, response) => {
    const bytes = tarArchive(MODEL)
    response.writeHead(200, { 'content-length': bytes.byteLength })
    response.write(bytes.subarray(0, 500_000), () => response.socket?.end())
    void request
  })
  await fetched()
  t.same(await files(), ['1/model.bin', 'config.pbtxt'])
  t.match(registry.heard.at(-1)?.headers.range, /^bytes=\d+-$/)
  push([tar(...MODEL, { name: 'more', data: 'x' })])
  for (const name of content.keys()) {
    const bytes = content.get(name) ?? ''
    if (name.startsWith('blobs/')) content.set(name, 'x'.repeat(Buffer.byteLength(bytes)))
  }
  t.match(await failure(), {
    reason: 'ARTIFACT_MISMATCH',
    message: /has other bytes than its digest/,
  })
})

await t.test('what a manifest may say wrongly', async (t) => {
  const { host, push, putManifest, failure, content } = await prepare(t)
  const layer = { mediaType: LAYER, digest: digestOf('x'), size: 1 }
  const cases: readonly (readonly [() => unknown, string, RegExp])[] = [
    [() => content.set('manifests/one', '<html>'), 'ARTIFACT_UNAVAILABLE', /answered no manifest/],
    [() => putManifest({ layers: [] }, 'one'), 'ARTIFACT_NOT_FOUND', /a manifest without layers/],
    [() => putManifest({ layers: [{ ...layer, size: -1 }] }, 'one'), 'ARTIFACT_INVALID', /a size/],
    [
      () => putManifest({ layers: [{ ...layer, digest: '../../x' }] }, 'one'),
      'ARTIFACT_INVALID',
      /want a digest sha256:HEX/,
    ],
    [
      () => putManifest({ layers: [{ ...layer, size: 2 ** 40 }] }, 'one'),
      'ARTIFACT_TOO_LARGE',
      /want at most/,
    ],
    [() => push([titled('../x', 'x')]), 'ARTIFACT_INVALID', /leads out of the model/],
    [() => push([titled('/etc/x', 'x')]), 'ARTIFACT_INVALID', /leads out of the model/],
    [() => push([titled('a', 'x'), titled('a', 'y')]), 'ARTIFACT_INVALID', /it is there twice/],
    [
      () => push([titled('a', 'x'), tar({ name: 'a/b', data: 'x' })]),
      'ARTIFACT_INVALID',
      /lies in 'a'/,
    ],
    [() => push([tar({ name: '../x', data: 'x' })]), 'ARTIFACT_INVALID', /leads out of the model/],
    [
      () => push([tar({ name: 'a', type: '2', link: '/etc/passwd' })]),
      'ARTIFACT_INVALID',
      /a link that leads out/,
    ],
    [() => push([tar({ name: 'a/.wh.b', data: '' })]), 'ARTIFACT_INVALID', /a layer deletes files/],
    [
      () => push([{ bytes: 'x', mediaType: `${LAYER}+zstd` }]),
      'ARTIFACT_INVALID',
      /gzipped or not/,
    ],
    [() => push([{ bytes: 'x', mediaType: 'text/plain' }]), 'ARTIFACT_INVALID', /want a title/],
    [() => content.delete('manifests/one'), 'ARTIFACT_NOT_FOUND', /MANIFEST_UNKNOWN: manifest unk/],
  ]
  for (const [change, reason, message] of cases) {
    change()
    t.match(await failure({ bounds: { attempts: 1 } }), { reason, message }, String(message))
  }
  const wrong = `sha256:${'0'.repeat(64)}`
  content.set(`manifests/${wrong}`, '{}')
  t.match(await failure({ at: `@${wrong}` }), {
    reason: 'ARTIFACT_MISMATCH',
    message: `'http://${host}/v2/models/yolo/manifests/${wrong}' has ${digestOf('{}')}, want ${wrong}`,
  })
})

await t.test('a server to which the registry leads gets no password', async (t) => {
  for (const isBasic of [false, true]) {
    const { push, registry, failure } = await prepare(t)
    push([tar(...MODEL)])
    const thief = await startArtifactServer((_, response) => {
      const challenge = isBasic ? 'Basic realm="x"' : `Bearer realm="${thief.origin}/token"`
      response.writeHead(401, { 'www-authenticate': challenge }).end('{}')
    })
    t.teardown(() => thief.close())
    registry.script(answerStatus(307, { location: `${thief.origin}/blob` }))
    const authorization = new SecretText(basicOf('me:hidden'))
    t.match(await failure({ credentials: { authorization } }), { reason: 'ARTIFACT_DENIED' })
    t.same(
      thief.heard.map(({ path, headers }) => [path, headers.authorization]),
      [['/blob', undefined]],
    )
    t.equal(registry.heard[0]?.headers.authorization, undefined)
  }
})

await t.test('no password goes to a server of tokens without TLS', async (t) => {
  const { push, registry, failure } = await prepare(t)
  push([tar(...MODEL)])
  registry.script((_, response) => {
    response.writeHead(401, { 'www-authenticate': 'Bearer realm="ftp://x/token"' }).end()
  })
  t.match(await failure({ bounds: { attempts: 1 } }), {
    reason: 'ARTIFACT_UNAVAILABLE',
    message: /names no https server for its tokens$/,
  })
})
