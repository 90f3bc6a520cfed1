import { ModelSpec } from '@tutti/api'
import * as fc from 'fast-check'
import t from 'tap'
import { parseArtifactSource } from './artifact-source.ts'

const isTaken = (storageUri: string): boolean =>
  ModelSpec.safeParse({ modelFormat: { name: 'onnx' }, storageUri }).success

const DIGEST = `sha256:${'a'.repeat(64)}`

await t.test('where the artifacts are', async (t) => {
  t.same(parseArtifactSource('pvc://models//a/b/'), { kind: 'claim', claim: 'models', path: 'a/b' })
  t.same(parseArtifactSource('hostPath:///srv/a'), { kind: 'hostPath', path: '/srv/a' })
  t.same(parseArtifactSource('s3://b/a'), { kind: 'remote', uri: 's3://b/a' })
  for (const [image, path] of [
    ['tutti/samples:0.1.0', 'model_repository/yolo'],
    ['localhost:5000/a/b:latest', 'm/'],
    [`registry.example/a@${DIGEST}`, '1'],
    [`registry.example:5000/a:2@${DIGEST}`, 'a/.b'],
  ] as const) {
    const uri = `image://${image}/${path}`
    t.ok(isTaken(uri), uri)
    t.same(parseArtifactSource(uri), { kind: 'image', image, path })
  }
})

const lower = fc.stringMatching(/^[a-z0-9]+([._-][a-z0-9]+)?$/)
const registry = fc.stringMatching(/^([a-z0-9]{1,9}[.])?[a-z0-9]{1,9}(:[0-9]{1,5})?$/)
const tag = fc.stringMatching(/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,20}$/)
const digest = fc.stringMatching(/^sha256:[0-9a-f]{64}$/)
const segment = fc.stringMatching(/^[A-Za-z0-9_][A-Za-z0-9_.+=-]*$/)

const image = fc
  .record({
    registry: fc.option(registry),
    names: fc.array(lower, { minLength: 1, maxLength: 3 }),
    version: fc.oneof(
      tag.map((text) => `:${text}`),
      digest.map((text) => `@${text}`),
      fc.tuple(tag, digest).map(([one, other]) => `:${one}@${other}`),
    ),
  })
  .map(({ registry: first, names, version }) =>
    [...(first === null ? [] : [first]), ...names].join('/').concat(version),
  )

await t.test('every image and path comes apart again as it was put together', async () => {
  const paths = fc.array(segment, { minLength: 1, maxLength: 4 }).map((parts) => parts.join('/'))
  fc.assert(
    fc.property(image, paths, (name, path) => {
      const uri = `image://${name}/${path}`
      // The tag of a name without a registry may look like a port, and is refused.
      fc.pre(!/^[^/:@]+:[0-9]+$/.test(name) && uri.length <= 1024)
      const found = parseArtifactSource(uri)
      return isTaken(uri) && found.kind === 'image' && found.image === name && found.path === path
    }),
    { numRuns: 300 },
  )
})

await t.test(
  'what any text is taken as has an image with a tag or digest, and a path',
  async () => {
    const piece = fc.constantFrom('a', 'B', '.', '..', '/', ':', '@', '5000', '$', DIGEST, '-', ' ')
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        const uri = `image://${pieces.join('')}`
        if (!isTaken(uri)) return true
        const found = parseArtifactSource(uri)
        return (
          found.kind === 'image' &&
          `image://${found.image}/${found.path}` === uri &&
          /^[^\s@]+(:[\w][\w.-]*|@sha256:[0-9a-f]{64})$/.test(
            found.image.replace(/:[^@:/]+@/, '@'),
          ) &&
          /^[^/.$:@\s][^$:@\s]*$/.test(found.path) &&
          !found.path.split('/').includes('..')
        )
      }),
      { numRuns: 300 },
    )
  },
)
