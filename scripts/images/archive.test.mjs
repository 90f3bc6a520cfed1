import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { test } from 'tap'
import { layersAbove, readImage, unpackedBytes } from './archive.mjs'

/** An archive of two layers, of 10 bytes and of 2000 that are compressed. */
function archive(t) {
  const layers = [
    { digest: 'sha256:a', mediaType: 'application/vnd.oci.image.layer.v1.tar' },
    { digest: 'sha256:b', mediaType: 'application/vnd.oci.image.layer.v1.tar+gzip' },
  ]
  const blobs = {
    manifest: JSON.stringify({ config: { digest: 'sha256:config' }, layers }),
    config: JSON.stringify({ config: { User: '1' }, rootfs: { diff_ids: ['one', 'two'] } }),
    a: '0123456789',
    b: gzipSync('x'.repeat(2000)),
  }
  const folder = t.testdir({
    'index.json': JSON.stringify({ manifests: [{ digest: 'sha256:manifest' }] }),
    blobs: { sha256: blobs },
  })
  const path = join(folder, 'image.tar')
  execFileSync('tar', ['--create', '--file', path, '--directory', folder, 'index.json', 'blobs'])
  return path
}

await test('what an image adds to its base is measured unpacked', async (t) => {
  const path = archive(t)
  const { config, layers } = await readImage(path)
  t.equal(config.config.User, '1')
  t.equal(await unpackedBytes(path, layersAbove(layers, [])), 2010)
  t.equal(await unpackedBytes(path, layersAbove(layers, ['one'])), 2000)
  t.equal(await unpackedBytes(path, layersAbove(layers, ['one', 'two'])), 0)
  t.throws(() => layersAbove(layers, ['two']), { message: /does not begin with the layers/ })
})

await test('another file is no archive', async (t) => {
  const path = join(t.testdir({ 'x.tar': 'text' }), 'x.tar')
  await t.rejects(readImage(path), {
    message: /x\.tar has no index\.json: it is not an OCI archive/,
  })
})
