import { lstat, readdir, readFile, readlink, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import * as fc from 'fast-check'
import t, { type Test } from 'tap'
import { type TarEntry, tarArchive } from '../testing/tar-archive.ts'
import { extractArchive } from './extract-archive.ts'
import { digestTree } from './tree-digest.ts'

const BOUNDS = { maxBytes: 1_000_000, maxFiles: 50, attempts: 1, stallMs: 1000 }

async function extract(
  t: Test,
  bytes: Uint8Array,
  bounds: Partial<typeof BOUNDS> = {},
  signal: AbortSignal = new AbortController().signal,
) {
  const folder = t.testdir({ inner: {}, outside: 'untouched' })
  const archive = join(folder, 'archive')
  await writeFile(archive, bytes)
  const tree = join(folder, 'inner/tree')
  try {
    const limits = { ...BOUNDS, ...bounds }
    const root = await extractArchive(archive, tree, { bounds: limits, signal })
    const { files, bytes } = await digestTree(root, limits)
    return { root, files, bytes }
  } finally {
    // Whatever the archive is: nothing beside the tree.
    t.same((await readdir(folder)).toSorted(), ['archive', 'inner', 'outside'])
    t.same(await readdir(join(folder, 'inner')), ['tree'])
    t.equal(await readFile(join(folder, 'outside'), 'utf8'), 'untouched')
  }
}

const MODEL: readonly TarEntry[] = [
  { name: 'config.pbtxt', data: 'backend: "b"' },
  { name: '1/', type: '5' },
  { name: '1/model.bin', data: 'weights' },
  { name: '1/run.sh', data: '#!', mode: 0o4775 },
]

await t.test('files and folders, gzipped or not, with a leading ./ or not', async (t) => {
  const dotted = MODEL.map((entry) => ({ ...entry, name: `./${entry.name}` }))
  for (const entries of [MODEL, [{ name: './', type: '5' }, ...dotted]]) {
    for (const pack of [(bytes: Buffer) => bytes, gzipSync]) {
      const { root, files, bytes } = await extract(t, pack(tarArchive(entries)))
      t.same({ files, bytes }, { files: 3, bytes: 21 })
      t.same((await readdir(root, { recursive: true })).toSorted(), [
        '1',
        '1/model.bin',
        '1/run.sh',
        'config.pbtxt',
      ])
      t.equal(await readFile(join(root, '1/model.bin'), 'utf8'), 'weights')
      t.equal((await stat(join(root, '1/model.bin'))).mode & 0o7777, 0o644)
      t.equal((await stat(join(root, '1/run.sh'))).mode & 0o7777, 0o755, 'no setuid')
    }
  }
})

await t.test('one folder around everything does not count, a version does', async (t) => {
  const wrapped = MODEL.map((entry) => ({ ...entry, name: `yolo-1.2/${entry.name}` }))
  const { root } = await extract(t, tarArchive(wrapped))
  t.ok(root.endsWith('/yolo-1.2'))
  t.same((await readdir(root)).toSorted(), ['1', 'config.pbtxt'])
  const alone = await extract(t, tarArchive([{ name: '1/model.bin', data: 'x' }]))
  t.same(await readdir(alone.root), ['1'])
})

await t.test('links stay within the model', async (t) => {
  const { root, files } = await extract(
    t,
    tarArchive([
      { name: '1/latest', type: '2', link: 'weights/a' },
      { name: '1/weights', type: '2', link: '../shared' },
      { name: 'shared/a', data: 'weights' },
      { name: 'shared/b', type: '1', link: 'shared/a' },
    ]),
  )
  t.equal(files, 5, 'those behind a link to a folder count, as for sha256sum')
  t.equal(await readlink(join(root, '1/latest')), 'weights/a')
  for (const path of ['1/latest', 'shared/b']) {
    t.equal(await readFile(join(root, path), 'utf8'), 'weights')
  }
  t.ok((await lstat(join(root, 'shared/b'))).isFile())
})

await t.test('an entry may name a path below its own as its link', async (t) => {
  // A file ignores it, and `B` and `b` are two names.
  const below = tarArchive([
    { name: 'any', type: 'K', data: 'f/g' },
    { name: 'f', data: 'x' },
    { name: 'b/c', data: 'weights' },
    { name: 'B', type: '1', link: 'b/c' },
  ])
  const { root, files } = await extract(t, below)
  t.equal(files, 3)
  t.equal(await readFile(join(root, 'B'), 'utf8'), 'weights')
})

const file = { name: 'f', data: 'x' }
const REFUSED: readonly (readonly [string, readonly TarEntry[], string | RegExp])[] = [
  ['no files', [{ name: 'd/', type: '5' }], 'the archive has no files'],
  ['a way up', [{ ...file, name: '../outside' }], '"../outside" is refused: it leads out of'],
  ['a way up later', [{ ...file, name: 'a/../../outside' }], 'it leads out of'],
  ['an absolute path', [{ ...file, name: '/tmp/tutti-outside' }], 'it leads out of'],
  ['an odd name', [{ ...file, name: 'a\\b' }], '"a\\\\b" is no name of a file'],
  ['a name in two lines', [{ ...file, name: 'a\nb' }], 'is no name of a file'],
  ['a file twice', [file, file], '"f" is refused: it is there twice'],
  ['a file below a file', [file, { ...file, name: 'f/g' }], "it lies in 'f', which is no folder"],
  [
    'a file where a link has its folder',
    [{ name: 'f/l', type: '2', link: 'g' }, file],
    '"f" is refused: it is a folder too',
  ],
  ['a file where a file has its folder', [{ ...file, name: 'f/g' }, file], 'it is a folder too'],
  ['a device', [{ name: 'null', type: '3' }], 'it is of the kind CharacterDevice'],
  ['a pipe', [{ name: 'pipe', type: '6' }], 'it is of the kind FIFO'],
  ['a link out', [file, { name: 'l', type: '2', link: '../../outside' }], 'leads out'],
  ['an absolute link', [file, { name: 'l', type: '2', link: '/etc/hostname' }], 'leads out'],
  ['a link to all', [file, { name: 'd/l', type: '2', link: '..' }], 'leads out'],
  ['a link to nothing', [file, { name: 'l', type: '2', link: 'gone' }], 'a link to nothing'],
  [
    'a way out over two links',
    [
      { ...file, name: 'd/e/f' },
      { name: 'd/l', type: '2', link: '../d' },
      { name: 'x', type: '2', link: 'd/l/../../../outside' },
    ],
    'leads out',
  ],
  [
    'a file through a link',
    [
      { name: 'l', type: '2', link: '..' },
      { ...file, name: 'l/outside' },
    ],
    '"l/outside" is refused: it lies in \'l\', which is no folder',
  ],
  ['a link to no name', [file, { name: 'l', type: '2' }], 'linkpath required'],
  ['a hard link out', [file, { name: 'l', type: '1', link: '../outside' }], 'it links to what'],
  ['a hard link ahead', [{ name: 'l', type: '1', link: 'f' }, file], 'it links to what'],
  [
    'a hard link to a link out',
    [
      { name: 'l', type: '2', link: '../../outside' },
      { name: 'm', type: '1', link: 'l' },
    ],
    'leads out',
  ],
  ['too deep', [{ ...file, name: `${'a/'.repeat(40)}f` }], 'want at most 32 levels'],
]

await t.test('what a hostile archive brings is refused by name', async (t) => {
  for (const [what, entries, message] of REFUSED) {
    await t.test(what, async (t) => {
      const refused = await extract(t, tarArchive(entries)).catch((error: unknown) => error)
      t.match(refused, { reason: 'ARTIFACT_INVALID', message })
    })
  }
})

await t.test('an archive that ends anywhere is refused, or all there', async (t) => {
  const whole = tarArchive(MODEL)
  const zipped = gzipSync(whole)
  for (let end = 0; end < zipped.byteLength; end++) {
    const refused = await extract(t, zipped.subarray(0, end)).catch((error: unknown) => error)
    t.match(refused, { reason: 'ARTIFACT_INVALID' }, `gzip, ${end} bytes`)
  }
  for (let end = 0; end < whole.byteLength; end += 64) {
    const result = await extract(t, whole.subarray(0, end)).catch((error: unknown) => error)
    // An archive that ends between two files is an archive of those before, as for every tar.
    const isWhole = !(result instanceof Error) && Object(result).files >= 1 && end % 512 === 0
    if (!isWhole) t.match(result, { reason: 'ARTIFACT_INVALID' }, `tar, ${end} bytes`)
  }
})

await t.test('extraction can be stopped at any time', async (t) => {
  const bytes = gzipSync(tarArchive(MODEL))
  for (let turns = 0; turns < 30; turns++) {
    const stop = new AbortController()
    const extracted = extract(t, bytes, {}, stop.signal).catch((error: unknown) => error)
    for (let i = 0; i < turns; i++) await new Promise(setImmediate)
    stop.abort(new Error('own'))
    const result = await extracted
    if (result instanceof Error) t.equal(result.message, 'own')
    else t.match(result, { files: 3 })
  }
})

await t.test('bounds hold, whatever the headers claim', async (t) => {
  const many = Array.from({ length: 51 }, (_, i) => ({ name: `${i}`, data: 'x' }))
  const folders = Array.from({ length: 101 }, (_, i) => ({ name: `${i}/`, type: '5' }))
  const cases: readonly (readonly [Uint8Array, string | RegExp])[] = [
    [tarArchive(many), 'more than 50 files'],
    [tarArchive(folders), 'more than 50 files'],
    [tarArchive([{ name: 'f', size: 2_000_000, data: 'x' }]), /^2000000 bytes or more, want at/],
    [gzipSync(Buffer.alloc(3_000_000)), 'unpacks to more than 1000000 bytes'],
    [
      tarArchive([
        { name: 'a', data: Buffer.alloc(600_000) },
        { name: 'b', data: Buffer.alloc(600_000) },
      ]),
      '1200000 bytes',
    ],
  ]
  for (const [bytes, message] of cases) {
    const refused = await extract(t, bytes).catch((error: unknown) => error)
    t.match(refused, { reason: 'ARTIFACT_TOO_LARGE', message })
  }
})

await t.test('what is no archive, or half of one, is refused', async (t) => {
  const whole = gzipSync(tarArchive(MODEL))
  const cases = [
    Buffer.from('<html>not found</html>'.repeat(100)),
    Buffer.from('PK\u0003\u0004'.repeat(300)),
    Buffer.alloc(0),
    whole.subarray(0, whole.byteLength - 20),
    tarArchive(MODEL).subarray(0, 512 + 4),
    zstdCompressSync(tarArchive(MODEL)),
  ]
  for (const bytes of cases) {
    const refused = await extract(t, bytes).catch((error: unknown) => error)
    t.match(refused, { reason: 'ARTIFACT_INVALID' })
  }
})

const odd = fc
  .array(fc.constantFrom('a', 'b', '1', '..', '.', '', 'ä', '\u0000', '\\'), { maxLength: 5 })
  .map((parts) => parts.join('/'))
const plain = fc.constantFrom('a', 'b', '1/c', '1/d', 'e/f/g', './h', 'ä b', 'B', 'b/C')
const name = fc.oneof({ weight: 6, arbitrary: plain }, { weight: 1, arbitrary: odd })
const entry = fc
  .record({
    name,
    type: fc.constantFrom(
      ...Array.from({ length: 9 }, () => '0'),
      '1',
      '2',
      '3',
      '5',
      '6',
      'x',
      'g',
      'L',
      'K',
      '7',
      '!',
    ),
    data: fc.string({ maxLength: 600 }),
    link: name,
  })
  // No file has a link: the parser refuses that.
  .map(({ link, ...rest }) => ('12'.includes(rest.type) ? { ...rest, link } : rest))

await t.test('any archive is extracted within its folder or refused', async (t) => {
  const spot = fc.record({ at: fc.nat(), byte: fc.nat(255) })
  const damage = fc.oneof(
    { weight: 4, arbitrary: fc.constant(null) },
    { weight: 1, arbitrary: spot },
  )
  const seen = { taken: 0, refused: 0 }
  await fc.assert(
    fc.asyncProperty(
      fc.array(entry, { maxLength: 4 }),
      damage,
      fc.boolean(),
      async (entries, spot, gzip) => {
        const bytes = tarArchive(entries)
        if (spot !== null) bytes[spot.at % bytes.byteLength] = spot.byte
        try {
          const { root } = await extract(t, gzip ? gzipSync(bytes) : bytes)
          await stat(root)
          seen.taken += 1
        } catch (error) {
          const { reason } = Object(error)
          if (!['ARTIFACT_INVALID', 'ARTIFACT_TOO_LARGE'].includes(reason)) throw error
          seen.refused += 1
        }
      },
    ),
    { numRuns: 150 },
  )
  t.ok(seen.taken > 5 && seen.refused > 5, JSON.stringify(seen))
})
