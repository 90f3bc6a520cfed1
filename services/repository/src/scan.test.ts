import { execFileSync } from 'node:child_process'
import { chmod, mkdir, rm, symlink, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import * as fc from 'fast-check'
import t, { type Test } from 'tap'
import { findRepositoryModel, scanRepositories } from './scan.ts'
import { writeModelTree } from './testing/model-tree.ts'

async function tree(t: Test, files: Readonly<Record<string, string>>): Promise<string> {
  const { directory, remove } = await writeModelTree(files)
  t.teardown(remove)
  return directory
}

await t.test('directories are models, numbers in them are versions', async (t) => {
  const repository = await tree(t, {
    'b/config.pbtxt': 'name: "b"',
    'b/10/model.onnx': 'x',
    'b/2/model.onnx': 'x',
    'b/0/': '',
    'b/labels.txt': 'cat',
    'a/1/': '',
    'empty/': '',
    '.git/1/': '',
    'README.md': 'no model',
  })
  t.strictSame(await scanRepositories([repository]), [
    {
      name: 'a',
      repository,
      directory: join(repository, 'a'),
      configPath: join(repository, 'a/config.pbtxt'),
      versions: [1],
    },
    {
      name: 'b',
      repository,
      directory: join(repository, 'b'),
      configPath: join(repository, 'b/config.pbtxt'),
      versions: [0, 2, 10],
      configText: 'name: "b"',
    },
    {
      name: 'empty',
      repository,
      directory: join(repository, 'empty'),
      configPath: join(repository, 'empty/config.pbtxt'),
      versions: [],
    },
  ])
})

await t.test('what is no plain number is no version', async (t) => {
  const names = ['01', '1x', '-1', '+1', '1.5', ' 1', 'warmup', 'configs', 'initial_state', '.1']
  const files = Object.fromEntries(names.map((name) => [`m/${name}/`, '']))
  const repository = await tree(t, { ...files, 'm/7': 'a file', 'm/3/': '' })
  const [model] = await scanRepositories([repository])
  t.same(model?.versions, [3])
})

await t.test('a version that no number can name is an error', async (t) => {
  const repository = await tree(t, { 'm/3/': '', 'm/9007199254740992/': '' })
  const [model] = await scanRepositories([repository])
  t.match(model, { versions: [], error: /m': version 9007199254740992, want at most 2\^53 - 1$/ })
})

await t.test('a name in two repositories is refused', async (t) => {
  const first = await tree(t, { 'm/1/': '', 'one/1/': '' })
  const second = await tree(t, { 'm/1/': '', 'two/1/': '' })
  const models = await scanRepositories([first, second, `${first}/`])
  t.same(
    models.map(({ name, repository, error }) => ({ name, repository, error })),
    [
      { name: 'm', repository: first, error: 'model appears in two or more repositories' },
      { name: 'one', repository: first, error: undefined },
      { name: 'two', repository: second, error: undefined },
    ],
  )
})

await t.test('a named configuration is taken where a model has it', async (t) => {
  const repository = await tree(t, {
    'a/configs/gpu.pbtxt': 'a gpu',
    'a/config.pbtxt': 'a plain',
    'b/config.pbtxt': 'b plain',
    'c/configs/other.pbtxt': 'c other',
  })
  const found = await scanRepositories([repository], { configName: 'gpu' })
  t.same(
    found.map(({ configText }) => configText),
    ['a gpu', 'b plain', undefined],
  )
  t.equal(found[0]?.configPath, join(repository, 'a/configs/gpu.pbtxt'))
  const plain = await scanRepositories([repository])
  t.equal(plain[0]?.configText, 'a plain')
})

await t.test('links are followed, and those that lead nowhere are nothing', async (t) => {
  const elsewhere = await tree(t, { 'm/1/model.onnx': 'x', 'm/config.pbtxt': 'c' })
  const repository = await tree(t, { 'real/': '' })
  await symlink(join(elsewhere, 'm'), join(repository, 'linked'))
  await symlink(join(elsewhere, 'm/1'), join(repository, 'real/4'))
  await symlink(join(elsewhere, 'absent'), join(repository, 'dangling'))
  const models = await scanRepositories([repository])
  t.same(
    models.map(({ name, versions }) => ({ name, versions })),
    [
      { name: 'linked', versions: [1] },
      { name: 'real', versions: [4] },
    ],
  )
})

await t.test('what is wrong with one model is its error alone', async (t) => {
  const repository = await tree(t, {
    'big/config.pbtxt': 'x'.repeat(16 * 1024 * 1024 + 1),
    'dir/config.pbtxt/': '',
    'good/config.pbtxt': 'x',
  })
  const { directory, remove } = await writeModelTree({})
  await mkdir(join(repository, 'latin'))
  await writeFile(join(repository, 'latin/config.pbtxt'), Uint8Array.of(0xff, 0xfe))
  t.teardown(remove)
  await symlink(directory, join(repository, 'gone'))
  const models = await scanRepositories([repository])
  t.match(
    models.map(({ name, error, configText }) => ({ name, error, configText })),
    [
      {
        name: 'big',
        error:
          /^cannot read model 'big': '.*config.pbtxt' has 16777217 bytes, want at most 16777216$/,
      },
      { name: 'dir', error: /^cannot read model 'dir': / },
      { name: 'gone', error: undefined },
      { name: 'good', error: undefined },
      { name: 'latin', error: undefined, configText: '\uDC80\uDC80' },
    ],
  )
})

await t.test('a named pipe in place of a configuration is not waited for', async (t) => {
  const repository = await tree(t, { 'good/1/': '', 'piped/1/': '' })
  execFileSync('mkfifo', [join(repository, 'piped', 'config.pbtxt')])
  t.match(await scanRepositories([repository]), [
    { name: 'good', error: undefined },
    { name: 'piped', error: /config.pbtxt' is not a regular file$/ },
  ])
})

await t.test(
  'a directory that may not be read is an error entry',
  { skip: process.getuid?.() === 0 ? 'root reads everything' : false },
  async (t) => {
    const repository = await tree(t, { 'locked/1/': '' })
    await chmod(join(repository, 'locked'), 0)
    const [model] = await scanRepositories([repository])
    t.match(model?.error, /EACCES/)
  },
)

await t.test('a repository that is not there is REPOSITORY_UNREADABLE', async (t) => {
  const repository = await tree(t, { file: 'x' })
  const absent = join(repository, 'absent')
  await t.rejects(scanRepositories([repository, absent]), {
    reason: 'REPOSITORY_UNREADABLE',
    message: `model repository '${absent}' cannot be read: it does not exist (ENOENT)`,
  })
  await t.rejects(scanRepositories([join(repository, 'file')]), {
    reason: 'REPOSITORY_UNREADABLE',
    message: /it is not a directory$/,
  })
  await rm(repository, { recursive: true })
  t.same(await scanRepositories([]), [])
})

await t.test('a directory that is named by itself holds something', async (t) => {
  const repository = await tree(t, {
    'volume/lost+found': '',
    'm/config.pbtxt': 'max_batch_size: 1',
  })
  for (const path of [join(repository, 'nowhere'), join(repository, 'volume')]) {
    await mkdir(path, { recursive: true })
    const directories = [{ name: 'm', path }]
    const [model] = await scanRepositories([], { directories })
    t.match(model, { name: 'm', versions: [], error: `cannot read model 'm': '${path}' is empty` })
    t.same(await findRepositoryModel([], 'm', { directories }), model)
    t.notOk(
      (await findRepositoryModel([dirname(path)], basename(path)))?.error,
      'of a repository it is a model',
    )
  }
  const directories = [{ name: 'm', path: join(repository, 'm') }]
  t.notOk((await scanRepositories([], { directories }))[0]?.error)
})

await t.test('whatever directories are called, the scan gives each once and sorted', async (t) => {
  const name = fc.stringMatching(/^[A-Za-z0-9_. é-]{1,20}$/)
  await fc.assert(
    fc.asyncProperty(fc.uniqueArray(name, { maxLength: 8 }), async (names) => {
      const usable = names.filter((each) => each !== '.' && each !== '..')
      const { directory, remove } = await writeModelTree(
        Object.fromEntries(usable.map((each) => [`${each}/1/`, ''])),
      )
      try {
        const found = await scanRepositories([directory])
        const wanted = usable.filter((each) => !each.startsWith('.')).toSorted()
        t.strictSame(
          found.map((model) => model.name),
          wanted,
        )
      } finally {
        await remove()
      }
    }),
    { numRuns: 30 },
  )
})
