import { createManualClock } from '@tutti/chassis/testing'
import { ServeError } from '@tutti/errors'
import t from 'tap'
import { pollRepository } from './poll-repository.ts'
import { type RepositoryChanges, RepositoryWatch } from './repository-watch.ts'

/** A repository whose contents are what a test says: name -> digest, or an error. */
function scripted(models: Record<string, string | Error>) {
  return {
    models,
    isUnreadable: false,
    async names(): Promise<readonly string[]> {
      if (this.isUnreadable) throw new ServeError('REPOSITORY_UNREADABLE', 'away')
      return Object.keys(models)
    },
    async take(name: string) {
      const digest = models[name] ?? 'absent'
      if (digest instanceof Error) throw digest
      const model = { name, repository: '', directory: '', configPath: '', versions: [] }
      return { model, digest, filesDigest: digest, release: async () => {} }
    },
  }
}

const NOTHING = { changed: [], removed: [], isSettling: false }
const SETTLING = { ...NOTHING, isSettling: true }

await t.test('a change counts once two looks in a row saw the same', async (t) => {
  const repository = scripted({ a: '1', b: '1' })
  const watch = new RepositoryWatch(repository)
  t.same(await watch.start(), ['a', 'b'])
  t.same(await watch.look(), NOTHING)
  repository.models['a'] = 'half'
  t.same(await watch.look(), SETTLING)
  repository.models['a'] = '2'
  t.same(await watch.look(), SETTLING)
  t.same(await watch.look(), { ...NOTHING, changed: ['a'] })
  t.same(await watch.look(), NOTHING)
})

await t.test('a change that is taken back is none', async (t) => {
  const repository = scripted({ a: '1' })
  const watch = new RepositoryWatch(repository)
  await watch.start()
  repository.models['a'] = '2'
  t.same(await watch.look(), SETTLING)
  repository.models['a'] = '1'
  t.same(await watch.look(), NOTHING)
  repository.models['a'] = '2'
  t.same(await watch.look(), SETTLING, 'it was seen once again only')
})

await t.test('models come and go', async (t) => {
  const repository = scripted({ a: '1' })
  const watch = new RepositoryWatch(repository)
  await watch.start()
  repository.models['b'] = '1'
  delete repository.models['a']
  t.same(await watch.look(), SETTLING)
  t.same(await watch.look(), { changed: ['b'], removed: ['a'], isSettling: false })
  repository.models['c'] = '1'
  t.same(await watch.look(), SETTLING)
  delete repository.models['c']
  t.same(await watch.look(), NOTHING, 'it came and went')
})

await t.test('a model that cannot be read is a change, and so is its repair', async (t) => {
  const repository = scripted({ a: '1' })
  const watch = new RepositoryWatch(repository)
  await watch.start()
  repository.models['a'] = new Error('no')
  await watch.look()
  t.same((await watch.look()).changed, ['a'])
  repository.models['a'] = '1'
  await watch.look()
  t.same((await watch.look()).changed, ['a'])
})

await t.test('a repository that is away is no removal', async (t) => {
  const repository = scripted({ a: '1' })
  const watch = new RepositoryWatch(repository)
  await watch.start()
  repository.isUnreadable = true
  for (let i = 0; i < 3; i++)
    await t.rejects(watch.look(), { code: 'INTERNAL', reason: 'REPOSITORY_UNREADABLE' })
  repository.isUnreadable = false
  t.same(await watch.look(), NOTHING)
})

await t.test('polling looks again soon at what may be half-written', async (t) => {
  const clock = createManualClock()
  const looks: (RepositoryChanges | ServeError)[] = [
    SETTLING,
    { ...NOTHING, changed: ['a'] },
    new ServeError('REPOSITORY_UNREADABLE', 'away'),
    NOTHING,
  ]
  const seen: string[] = []
  const looked: (() => void)[] = []
  const stop = new AbortController()
  const polling = pollRepository({
    watch: {
      look: async () => {
        seen.push(`look at ${clock.now()}`)
        const next = looks.shift()
        looked.shift()?.()
        if (next === undefined || next instanceof ServeError) throw next ?? new Error('too many')
        return next
      },
    },
    pollMs: 15_000,
    clock,
    signal: stop.signal,
    apply: async ({ changed }) => void seen.push(`apply ${changed.join()}`),
    failed: (error) => seen.push(`failed ${error.message}`),
  })
  for (const ms of [15_000, 1000, 15_000, 15_000]) {
    const look = new Promise<void>((resolve) => looked.push(resolve))
    while (clock.pending === 0) await new Promise(setImmediate)
    clock.advance(ms)
    await look
  }
  while (clock.pending === 0) await new Promise(setImmediate)
  stop.abort(new Error('end'))
  await polling
  t.same(seen, [
    'look at 15000',
    'look at 16000',
    'apply a',
    'look at 31000',
    'failed away',
    'look at 46000',
  ])
})
