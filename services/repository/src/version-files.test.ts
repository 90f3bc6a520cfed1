import { mkdir, rename, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import * as fc from 'fast-check'
import t, { type Test } from 'tap'
import { readLabels } from './labels.ts'
import type { RepositoryModel } from './repository-model.ts'
import { scanRepositories } from './scan.ts'
import { writeModelTree } from './testing/model-tree.ts'
import { listTree } from './tree-files.ts'
import {
  digestVersion,
  listVersionFiles,
  resolveModelFile,
  versionDirectory,
} from './version-files.ts'

async function model(
  t: Test,
  files: Readonly<Record<string, string | Uint8Array>>,
): Promise<RepositoryModel> {
  const entries = Object.entries(files).map(([name, contents]) => [`m/${name}`, contents])
  const { directory, remove } = await writeModelTree(Object.fromEntries(entries))
  t.teardown(remove)
  const [found] = await scanRepositories([directory])
  if (found === undefined) throw new Error('no model was written')
  return found
}

await t.test(
  'files of a version are listed by name, without what Python leaves behind',
  async (t) => {
    const found = await model(t, {
      '1/model.py': 'code',
      '1/lib/b.py': 'b',
      '1/lib/__pycache__/b.pyc': 'compiled',
      '1/__pycache__/model.pyc': 'compiled',
      '1/.DS_Store': 'junk',
      '1/lib.txt': 'l',
      '2/': '',
    })
    t.same(
      (await listVersionFiles(found, 1)).map(({ name, size }) => ({ name, size })),
      [
        { name: 'lib.txt', size: 1n },
        { name: 'lib/b.py', size: 1n },
        { name: 'model.py', size: 4n },
      ],
    )
    t.same(await listVersionFiles(found, 2), [])
    t.equal(versionDirectory(found, 1), join(found.directory, '1'))
    await t.rejects(listVersionFiles(found, 3), {
      reason: 'REPOSITORY_UNREADABLE',
      message: /^version 3 of model 'm' cannot be read: ENOENT/,
    })
  },
)

await t.test('a circle of links is refused', async (t) => {
  const found = await model(t, { '1/model.onnx': 'x' })
  await symlink(join(found.directory, '1'), join(found.directory, '1/again'))
  await t.rejects(listVersionFiles(found, 1), {
    reason: 'REPOSITORY_UNREADABLE',
    message: /more than 32 directories deep$/,
  })
})

await t.test('links count as often as they lead to something', async (t) => {
  const root = t.testdir({})
  const levels = 6
  for (let i = 0; i <= levels; i += 1) await mkdir(join(root, `d${i}`))
  for (let i = 0; i < levels; i += 1) {
    for (const name of ['a', 'b']) await symlink(`../d${i + 1}`, join(root, `d${i}`, name))
  }
  await writeFile(join(root, `d${levels}`, 'file'), '')
  // From d0 there are two ways to d1, four to d2 and so on, and the file once at the end of each.
  const folder = join(root, 'd0')
  const entries = 2 ** (levels + 1) - 2 + 2 ** levels
  t.equal((await listTree(folder, { maxEntries: entries })).length, 2 ** levels)
  await t.rejects(listTree(folder, { maxEntries: entries - 1 }), {
    reason: 'REPOSITORY_UNREADABLE',
    message: /has more than \d+ files and folders, those behind links counted$/,
  })
})

await t.test(
  'a revision follows configuration, names and contents, and nothing else',
  async (t) => {
    const files = { '1/model.onnx': 'weights', '1/data/part.bin': 'more' }
    const found = await model(t, files)
    const revision = await digestVersion(found, 1, 'config')
    t.match(revision, /^[0-9a-f]{64}$/)
    const copy = await model(t, { ...files, '1/__pycache__/x.pyc': 'x', 'config.pbtxt': 'any' })
    t.equal(await digestVersion(copy, 1, 'config'), revision, 'a copy elsewhere')
    t.not(await digestVersion(found, 1, 'other'), revision, 'another configuration')
    await writeFile(join(copy.directory, '1/model.onnx'), 'changed')
    t.not(await digestVersion(copy, 1, 'config'), revision, 'other contents of the same size')
    await rename(
      join(found.directory, '1/data/part.bin'),
      join(found.directory, '1/data/renamed.bin'),
    )
    t.not(await digestVersion(found, 1, 'config'), revision, 'another name')
    await mkdir(join(found.directory, '2'))
    t.match(await digestVersion(found, 2, 'config'), /^[0-9a-f]{64}$/, 'an empty version')
  },
)

await t.test(
  'a revision follows what all versions share, but no other version and no configuration',
  async (t) => {
    const files = { '1/model.py': 'code', 'vocab.txt': 'one', 'data/part.bin': 'more' }
    const found = await model(t, files)
    const revision = await digestVersion(found, 1, 'config')
    const others = { '2/model.py': 'next', 'config.pbtxt': 'any', 'configs/small.pbtxt': 'any' }
    const copy = await model(t, { ...files, ...others })
    t.equal(await digestVersion(copy, 1, 'config'), revision)
    // As at the root of a volume, or of a working tree: what leads nowhere is not read by the model either.
    await symlink('nowhere', join(copy.directory, 'dangling'))
    t.equal(await digestVersion(copy, 1, 'config'), revision)
    for (const changed of ['vocab.txt', 'data/part.bin']) {
      const before = await digestVersion(copy, 1, 'config')
      await writeFile(join(copy.directory, changed), 'two')
      t.not(await digestVersion(copy, 1, 'config'), before, changed)
    }
    const moved = await model(t, {
      '1/model.py': 'code',
      '1/vocab.txt': 'one',
      'data/part.bin': 'more',
    })
    t.not(await digestVersion(moved, 1, 'config'), revision, 'the same file in the version')
  },
)

await t.test('different contents never share a revision', async (t) => {
  const seen = new Map<string, string>()
  const content = fc.dictionary(fc.constantFrom('a', 'b', 'ab', 'd/a'), fc.string({ maxLength: 3 }))
  await fc.assert(
    fc.asyncProperty(content, fc.string({ maxLength: 3 }), async (files, config) => {
      const entries = Object.entries(files).map(([name, text]) => [`m/1/${name}`, text])
      const { directory, remove } = await writeModelTree({
        'm/1/': '',
        ...Object.fromEntries(entries),
      })
      try {
        const [found] = await scanRepositories([directory])
        if (found === undefined) throw new Error('no model was written')
        const digest = await digestVersion(found, 1, config)
        const names = Object.keys(files).toSorted()
        const what = JSON.stringify([names.map((name) => [name, files[name]]), config])
        t.equal(seen.get(digest) ?? what, what)
        seen.set(digest, what)
      } finally {
        await remove()
      }
    }),
    { numRuns: 40 },
  )
})

await t.test('model files are found within their version only', async (t) => {
  const found = await model(t, { '1/model.onnx': 'x', secret: 's' })
  t.equal(await resolveModelFile(found, 1, 'model.onnx'), join(found.directory, '1/model.onnx'))
  for (const filename of ['../secret', '/etc/passwd', '.', '', '..']) {
    await t.rejects(resolveModelFile(found, 1, filename), {
      reason: 'MODEL_LOAD_FAILED',
      code: 'INVALID_ARGUMENT',
      message: `unable to load model 'm': file name '${filename}' is outside the version directory`,
    })
  }
  await t.rejects(resolveModelFile(found, 1, 'absent.onnx'), {
    reason: 'MODEL_LOAD_FAILED',
    message: "unable to load model 'm': version 1 has no file 'absent.onnx'",
  })
})

function output(name: string, label_filename: string) {
  return { name, label_filename }
}

await t.test('labels are lines, from inside the model directory', async (t) => {
  const found = await model(t, {
    'labels.txt': 'cat\ndog\r\n\nbird\n',
    'sub/one.txt': 'only',
    'empty.txt': '',
    'latin.txt': Uint8Array.of(0xff),
  })
  t.same(
    await readLabels(found, [
      output('a', 'labels.txt'),
      output('b', 'sub/one.txt'),
      output('c', 'empty.txt'),
      output('d', ''),
    ]),
    { a: ['cat', 'dog', '', 'bird'], b: ['only'], c: [] },
  )
  await t.rejects(readLabels(found, [output('scores', '../other/labels.txt')]), {
    reason: 'UNSUPPORTED',
    message:
      "label file path '../other/labels.txt' for output 'scores' in model 'm' is outside model directory",
  })
  for (const filename of ['absent.txt', 'latin.txt', 'sub']) {
    await t.rejects(readLabels(found, [output('scores', filename)]), {
      name: 'ServeError',
      reason: 'REPOSITORY_UNREADABLE',
    })
  }
})
