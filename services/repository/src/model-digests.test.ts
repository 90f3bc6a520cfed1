import { createHash } from 'node:crypto'
import { rename, rm, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { ModelDigests } from './model-digests.ts'
import { findRepositoryModel } from './scan.ts'
import { writeModelTree } from './testing/model-tree.ts'

async function modelTree(t: Test, files: Readonly<Record<string, string>>) {
  const { directory, remove } = await writeModelTree(files)
  t.teardown(remove)
  return directory
}

const FILES = {
  'm/config.pbtxt': 'backend: "b"',
  'm/1/model.bin': 'one',
  'm/labels.txt': 'cat',
}

/** The digest of `m` below the directory, as a new process would make it. */
async function digestOf(directory: string, digests = new ModelDigests()): Promise<string> {
  const model = await findRepositoryModel([directory], 'm')
  if (model === undefined) throw new Error('no model')
  return digests.digest(model)
}

await t.test('what a model is made of changes its digest', async (t) => {
  const directory = await modelTree(t, FILES)
  const before = await digestOf(directory)
  const changes: Readonly<Record<string, () => Promise<void>>> = {
    'an artifact': () => writeFile(join(directory, 'm/1/model.bin'), 'two'),
    'the configuration': () => writeFile(join(directory, 'm/config.pbtxt'), 'backend: "c"'),
    'a label file': () => writeFile(join(directory, 'm/labels.txt'), 'dog'),
    'a file of another name': () =>
      rename(join(directory, 'm/1/model.bin'), join(directory, 'm/1/x.bin')),
    'a file that goes': () => rm(join(directory, 'm/labels.txt')),
  }
  const seen = new Set([before])
  for (const [what, change] of Object.entries(changes)) {
    await change()
    const now = await digestOf(directory)
    t.notOk(seen.has(now), what)
    seen.add(now)
  }
})

await t.test('an empty version directory counts, as an ensemble has no other', async (t) => {
  const one = await modelTree(t, { 'm/1/': '' })
  const two = await modelTree(t, { 'm/1/': '', 'm/2/': '' })
  t.not(await digestOf(one), await digestOf(two))
})

await t.test('times, places and what tools leave behind do not count', async (t) => {
  const directory = await modelTree(t, FILES)
  const elsewhere = await modelTree(t, {
    ...FILES,
    'm/1/__pycache__/model.cpython-311.pyc': 'x',
    'm/1/model.cpython-311.pyc': 'x',
    'm/.git/HEAD': 'x',
    'm/.config.pbtxt.swp': 'x',
    'm/config.pbtxt~': 'x',
    'm/#config.pbtxt#': 'x',
    'm/1/model.bin.tmp': 'x',
  })
  const digest = await digestOf(directory)
  t.equal(await digestOf(elsewhere), digest)
  await utimes(join(directory, 'm/1/model.bin'), 1, 1)
  t.equal(await digestOf(directory), digest)
})

await t.test('a file is read again only if it may have changed', async (t) => {
  const directory = await modelTree(t, FILES)
  const file = join(directory, 'm/1/model.bin')
  // Long after the files were written, so that what is known of them may be kept.
  const digests = new ModelDigests({ epochMs: () => Date.now() + 60_000 })
  const before = await digestOf(directory, digests)
  t.equal(await digestOf(directory, digests), before)
  await writeFile(file, 'two')
  const changed = await digestOf(directory, digests)
  t.not(changed, before, 'of the same size')
  t.equal(await digestOf(directory), changed, 'also where nothing is known')
})

await t.test('a file that was just written is never taken for unchanged', async (t) => {
  const directory = await modelTree(t, FILES)
  const file = join(directory, 'm/1/model.bin')
  const digests = new ModelDigests()
  const seen = new Set<string>()
  // Within one tick of the file system's clock, size and times may stay the same.
  for (let i = 0; i < 50; i++) {
    await writeFile(file, createHash('sha256').update(String(i)).digest('hex'))
    seen.add(await digestOf(directory, digests))
  }
  t.equal(seen.size, 50)
})
