import { mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { ModelRepository } from './model-repository.ts'
import { writeModelTree } from './testing/model-tree.ts'

const CONFIG = 'backend: "b"\nmax_batch_size: 4\n'
const over = (model: string): string =>
  `platform: "ensemble" ensemble_scheduling { step { model_name: "${model}" model_namespace: "x" } }`

async function open(t: Test, files: Readonly<Record<string, string>>) {
  const { directory, remove } = await writeModelTree(files)
  const { directory: temporaryDirectory, remove: removeTemporary } = await writeModelTree({})
  const repository = new ModelRepository({ paths: [directory], temporaryDirectory })
  t.teardown(async () => {
    await repository.close()
    await remove()
    await removeTemporary()
  })
  return { repository, directory, temporaryDirectory }
}

await t.test('a model is read anew each time', async (t) => {
  const { repository, directory } = await open(t, { 'm/config.pbtxt': CONFIG, 'm/1/f': 'x' })
  const before = await repository.take('m')
  t.match(before.model, { name: 'm', configText: CONFIG, versions: [1] })
  t.equal((await repository.take('m')).digest, before.digest)
  await writeFile(join(directory, 'm/1/f'), 'y')
  t.not((await repository.take('m')).digest, before.digest)
  t.same(await repository.names(), ['m'])
  await before.release()
})

await t.test('why there is nothing to take', async (t) => {
  const { repository } = await open(t, { 'm/1/f': 'x' })
  const cases: readonly (readonly [string, string, string])[] = [
    ['', 'INVALID_PARAMETER', 'Model name cannot be empty. Please enter a valid name to deploy.'],
    [
      '..',
      'INVALID_PARAMETER',
      "invalid model name '..', model name must not contain path traversal characters",
    ],
    ['a/b', 'INVALID_PARAMETER', 'must not contain path traversal characters'],
    ['a\0', 'INVALID_PARAMETER', 'must not contain path traversal characters'],
    ['.git', 'INVALID_PARAMETER', 'must not begin with a dot'],
    ['x'.repeat(256), 'INVALID_PARAMETER', 'want at most 255 bytes'],
    ['nosuch', 'MODEL_NOT_FOUND', "no model repository has a directory 'nosuch'"],
  ]
  for (const [name, reason, text] of cases) {
    const error: unknown = await repository.take(name).catch((thrown: unknown) => thrown)
    t.match(error, { reason })
    t.ok(String(error).includes(text), `${String(error)} has "${text}"`)
    t.equal(await repository.readConfig(name), undefined)
  }
})

await t.test(
  'a name in two repositories is refused, and so is a repository that went',
  async (t) => {
    const one = await writeModelTree({ 'm/1/f': 'x' })
    const two = await writeModelTree({ 'm/1/f': 'x', 'n/1/f': 'x' })
    t.teardown(two.remove)
    const repository = new ModelRepository({ paths: [one.directory, two.directory] })
    await t.rejects(repository.take('m'), {
      reason: 'REPOSITORY_UNREADABLE',
      message: 'model appears in two or more repositories',
    })
    await one.remove()
    await t.rejects(repository.take('nosuch'), {
      code: 'INTERNAL',
      reason: 'REPOSITORY_UNREADABLE',
    })
    await t.rejects(repository.names(), { code: 'INTERNAL', reason: 'REPOSITORY_UNREADABLE' })
  },
)

await t.test('a config of the request replaces the one on disk', async (t) => {
  const { repository } = await open(t, { 'm/config.pbtxt': CONFIG, 'm/1/f': 'x' })
  const files = new Map<string, Uint8Array>()
  const taken = await repository.take('m', { config: '{"backend": "c"}', files })
  t.match(taken.model, { configText: 'backend: "c"\n', versions: [1] })
  t.not(taken.digest, (await repository.take('m')).digest)
  t.equal(
    (await repository.take('m', { config: '{ "backend":"c" }', files })).digest,
    taken.digest,
    'however it is written',
  )
  t.match(await repository.readConfig('m', { config: '{"backend": "c"}', files }), { backend: 'c' })
  t.match(await repository.readConfig('m'), { backend: 'b' })
  await t.rejects(repository.take('m', { config: '{', files }), {
    code: 'INVALID_ARGUMENT',
    reason: 'CONFIG_SYNTAX',
  })
  t.equal(await repository.readConfig('m', { config: '{', files }), undefined)
})

await t.test('files of the request are the model, until they are released', async (t) => {
  const { repository, temporaryDirectory } = await open(t, {
    'm/config.pbtxt': CONFIG,
    'm/1/f': '',
  })
  const overrides = {
    config: '{"backend": "c"}',
    files: new Map([['7/model.bin', Buffer.from('seven')]]),
  }
  const one = await repository.take('m', overrides)
  t.match(one.model, { name: 'm', configText: 'backend: "c"\n', versions: [7] })
  const two = await repository.take('absent', overrides)
  t.equal(two.digest, one.digest, 'of the same files')
  t.not(two.model.directory, one.model.directory)
  await one.release()
  await t.rejects(stat(one.model.directory), { code: 'ENOENT' })
  t.ok(await stat(two.model.directory))
  await t.rejects(repository.take('m', { ...overrides, files: new Map([['../x', Buffer.of()]]) }), {
    code: 'INVALID_ARGUMENT',
    reason: 'INVALID_PARAMETER',
  })
  await repository.close()
  t.same(await readdir(temporaryDirectory), [])
})

await t.test('a directory that goes while it is read is told by name', async (t) => {
  const { repository, directory } = await open(t, { 'm/1/f': 'x' })
  const taken = repository.take('m').then(
    () => t.pass('it was faster'),
    (error: unknown) => t.match(error, { details: { model: 'm' } }),
  )
  await rm(join(directory, 'm'), { recursive: true })
  await taken
})

await t.test('repositories may be namespaces', async (t) => {
  const one = await writeModelTree({
    'm/1/f': 'x',
    'm/config.pbtxt': CONFIG,
    'own/config.pbtxt': over('m'),
    'other/config.pbtxt': over('n'),
  })
  const two = await writeModelTree({ 'm/1/f': 'y', 'n/1/f': 'x', 'broken/config.pbtxt': '{' })
  const three = await writeModelTree({ 'ambiguous/config.pbtxt': over('m') })
  const paths = [one, two, three].map(({ directory }) => directory)
  const [first = '', second = '', third = ''] = paths
  for (const { remove } of [one, two, three]) t.teardown(remove)
  // The same folder twice is one namespace.
  const repository = new ModelRepository({ paths: [...paths, `${first}/`], isNamespaced: true })
  t.equal(repository.hasListed(`${first}::m`), false)
  t.same(await repository.names(), [
    ...['m', 'other', 'own'].map((name) => `${first}::${name}`),
    ...['broken', 'm', 'n'].map((name) => `${second}::${name}`),
    `${third}::ambiguous`,
  ])
  t.equal(repository.hasListed(`${first}::m`), true)
  t.equal(repository.hasListed(`${first}::n`), false)
  const { model } = await repository.take(`${second}::m`)
  t.match(model, { name: `${second}::m`, directory: join(second, 'm') })

  const cases: readonly (readonly [string, string])[] = [
    [`${first}::own`, `${first}::m`],
    [`${first}::other`, `${second}::n`],
    [`${third}::ambiguous`, 'm'],
  ]
  const stepOf = async (name: string, config?: string): Promise<string | undefined> => {
    const overrides = config === undefined ? undefined : { config, files: new Map() }
    const { model } = await repository.take(name, overrides)
    return /model_name: "(.*)"/.exec(model.configText ?? '')?.[1]
  }
  for (const [ensemble, want] of cases) t.equal(await stepOf(ensemble), want, ensemble)
  const json = JSON.stringify({ ensemble_scheduling: { step: [{ model_name: 'n' }] } })
  t.equal(await stepOf(`${first}::own`, json), `${second}::n`, 'of a load request too')
  t.equal((await repository.take(`${second}::broken`)).model.configText, '{')

  const before = await repository.take(`${first}::other`)
  await mkdir(join(first, 'n'))
  const after = await repository.take(`${first}::other`)
  t.not(after.digest, before.digest, 'another model is meant now')
  t.equal(await stepOf(`${first}::other`), `${first}::n`)

  for (const name of ['m', `${first}::nosuch`, `${third}::m`, '/nowhere::m']) {
    await t.rejects(repository.take(name), { code: 'NOT_FOUND' }, name)
  }
  const files = new Map([['1/f', new Uint8Array()]])
  await t.rejects(repository.take(`${first}::m`, { config: '{}', files }), {
    reason: 'UNSUPPORTED',
    message: /^model 'm' cannot be loaded with files: with --model-namespacing/,
  })
  const plain = new ModelRepository({ paths: [first] })
  await t.rejects(plain.take(`${first}::m`), { message: /path traversal/ })
})
