import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { attest } from './attestation.mjs'

const RELEASE = 'PRETTY_NAME="Debian 12"\nVERSION_ID="12"\nID=debian\n'
const STATUS = `Package: libc6
Status: install ok installed
Architecture: amd64
Version: 2.36-9+deb12u10

Package: gone
Status: deinstall ok config-files
Architecture: amd64
Version: 1:1.0
`
const NPM = {
  bomFormat: 'CycloneDX',
  specVersion: '1.5',
  components: [{ purl: 'pkg:npm/zod@4.6.7' }],
}

/** Writes files into a new folder of `parent`, and gives an archive of them. */
function pack(parent, files, flags = '-c') {
  const folder = mkdtempSync(join(parent, 'files-'))
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  const args = [flags, '-C', folder, ...Object.keys(files)]
  return spawnSync('tar', args, { maxBuffer: 1 << 26 }).stdout
}

/** An OCI archive of layers. */
function image(test, layers) {
  const folder = test.testdir({})
  const blobs = {}
  const add = (bytes) => {
    const digest = createHash('sha256').update(bytes).digest('hex')
    blobs[`blobs/sha256/${digest}`] = bytes
    return { digest: `sha256:${digest}` }
  }
  const entries = layers.map(({ files, flags }) => add(pack(folder, files, flags)))
  const manifest = add(JSON.stringify({ layers: entries }))
  const archive = join(folder, 'image.tar')
  const index = JSON.stringify({ manifests: [manifest] })
  writeFileSync(archive, pack(folder, { ...blobs, 'index.json': index }))
  return { folder, archive, digest: manifest.digest }
}

await t.test(
  'states what npm, Debian and PyPI have put into the image of that digest',
  async (test) => {
    const { archive, digest } = image(test, [
      {
        files: {
          'usr/lib/os-release': RELEASE,
          'var/lib/dpkg/status': 'Package: libc6\nVersion: 1\n',
        },
        flags: '-cz',
      },
      { files: { 'var/lib/dpkg/status': STATUS, 'tmp/other': 'x' }, flags: '-cz' },
      { files: { 'tmp/nothing': 'of interest' } },
      {
        files: {
          'app/sbom.cdx.json': JSON.stringify(NPM),
          'opt/python/lib/python3.11/site-packages/Some_Thing-1.2.dist-info/METADATA':
            'Name: Some_Thing\nVersion: 1.2\n',
        },
      },
    ])
    const text = attest(archive, 'docker.io/tutti/step:1')
    const { subject, predicate, predicateType } = JSON.parse(text)
    test.same(subject, [
      { name: 'docker.io/tutti/step:1', digest: { sha256: digest.replace('sha256:', '') } },
    ])
    test.equal(predicateType, 'https://cyclonedx.org/bom')
    test.equal(predicate.specVersion, '1.5')
    test.same(
      predicate.components.map(({ purl }) => purl),
      [
        'pkg:npm/zod@4.6.7',
        'pkg:deb/debian/libc6@2.36-9%2Bdeb12u10?arch=amd64&distro=debian-12',
        'pkg:pypi/some-thing@1.2',
      ],
    )
    test.equal(attest(archive, 'docker.io/tutti/step:1'), text, 'equal archives give equal text')
  },
)

await t.test('refuses an archive that is no image of Tutti', async (test) => {
  const { folder, archive } = image(test, [{ files: { 'var/lib/dpkg/status': STATUS } }])
  test.throws(() => attest(archive, 'x'), { message: /image\.tar: .*sbom\.cdx\.json/ })
  const torn = join(folder, 'torn.tar')
  writeFileSync(torn, 'torn')
  test.throws(() => attest(torn, 'x'), { message: /torn\.tar: want index\.json in it/ })
})
