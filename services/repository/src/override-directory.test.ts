import { readdir, readFile, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import t, { type Test } from 'tap'
import { OverrideDirectories } from './override-directory.ts'
import { writeModelTree } from './testing/model-tree.ts'

async function folder(t: Test): Promise<string> {
  const { directory, remove } = await writeModelTree({})
  t.teardown(remove)
  return directory
}

const FILES = new Map([
  ['1/model.bin', Buffer.from('one')],
  ['labels.txt', Buffer.from('cat')],
])

await t.test('files are written for this user alone, each model by itself', async (t) => {
  const parent = await folder(t)
  const directories = new OverrideDirectories(parent)
  const one = await directories.write('m', FILES)
  const two = await directories.write('m', FILES)
  t.equal(basename(one.path), 'm')
  t.not(one.path, two.path)
  t.equal(await readFile(join(one.path, '1/model.bin'), 'utf8'), 'one')
  const [root] = await readdir(parent)
  t.equal((await stat(join(parent, root ?? ''))).mode & 0o777, 0o700)
  t.equal((await stat(join(one.path, 'labels.txt'))).mode & 0o777, 0o600)
  await one.remove()
  await one.remove()
  await t.rejects(stat(one.path), { code: 'ENOENT' })
  t.ok(await stat(two.path))
  await directories.close()
  t.same(await readdir(parent), [])
})

await t.test('what cannot be written leaves nothing behind', async (t) => {
  const parent = await folder(t)
  const directories = new OverrideDirectories(parent)
  const files = new Map([
    ['a', Buffer.from('')],
    ['a/b', Buffer.from('')],
  ])
  await t.rejects(directories.write('m', files), { code: 'EEXIST' })
  const [root] = await readdir(parent)
  t.same(await readdir(join(parent, root ?? '')), [])
  await directories.close()
})
