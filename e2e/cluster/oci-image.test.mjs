import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { fullName, namesIn } from './images.mjs'
import { writeImage } from './oci-image.mjs'

await test('an image is an archive that tar reads, and whose digests hold', async (t) => {
  const root = t.testdir({ program: 'x'.repeat(1000), other: '' })
  const path = join(root, 'image.tar')
  const image = {
    name: 'localhost/x:test',
    files: { '/usr/bin/program': join(root, 'program'), '/other': join(root, 'other') },
    folders: ['/tmp'],
    entrypoint: ['/usr/bin/program'],
  }
  writeImage(path, image)
  const folder = join(root, 'unpacked')
  mkdirSync(folder)
  execFileSync('tar', ['-xf', path, '-C', folder])
  const readBlob = ({ digest, size }) => {
    const bytes = readFileSync(join(folder, 'blobs', digest.replace(':', '/')))
    t.equal(bytes.length, size)
    t.equal(`sha256:${createHash('sha256').update(bytes).digest('hex')}`, digest)
    return bytes
  }
  const index = JSON.parse(readFileSync(join(folder, 'index.json'), 'utf8'))
  const manifest = JSON.parse(readBlob(index.manifests[0]))
  const config = JSON.parse(readBlob(manifest.config))
  t.match(config.config, { Entrypoint: ['/usr/bin/program'], User: '65532:65532' })
  t.same(config.rootfs.diff_ids, [manifest.layers[0].digest])
  const listed = execFileSync('tar', ['-tv', '--numeric-owner'], {
    input: readBlob(manifest.layers[0]),
    encoding: 'utf8',
  })
  t.same(
    listed
      .trim()
      .split('\n')
      .map((line) => line.replace(/ +(\d+) .* /, ' $1 ')),
    [
      '-rwxr-xr-x 0/0 0 other',
      'drwxrwxrwt 0/0 0 tmp/',
      'drwxr-xr-x 0/0 0 usr/',
      'drwxr-xr-x 0/0 0 usr/bin/',
      '-rwxr-xr-x 0/0 1000 usr/bin/program',
    ],
  )
  t.same(namesIn(path), ['localhost/x:test'])
  const again = join(root, 'again.tar')
  writeImage(again, image)
  t.ok(readFileSync(again).equals(readFileSync(path)), 'the same files give the same archive')
})

await test('names are completed as kubelets do', async (t) => {
  for (const [name, full] of [
    ['nats:2', 'docker.io/library/nats:2'],
    ['tutti/step:0.1.0', 'docker.io/tutti/step:0.1.0'],
    ['localhost/x:test', 'localhost/x:test'],
    ['registry.example/x/y:1', 'registry.example/x/y:1'],
    ['host:5000/x:1', 'host:5000/x:1'],
  ]) {
    t.equal(fullName(name), full)
  }
})
