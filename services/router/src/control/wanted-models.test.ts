import { readdir } from 'node:fs/promises'
import { OverrideDirectories } from '@tutti/repository'
import t, { type Test } from 'tap'
import { WantedModels } from './wanted-models.ts'

function open(t: Test, by = 'router-a') {
  const parent = t.testdir({})
  const directories = new OverrideDirectories({ parent })
  t.teardown(() => directories.close())
  const time = { now: 1000.5 }
  const wanted = new WantedModels({ by, directories, epochMs: () => time.now })
  const left = async (): Promise<number> => {
    const [root] = await readdir(parent)
    return root === undefined ? 0 : (await readdir(`${parent}/${root}`)).length
  }
  return { wanted, time, left }
}

const ASKED = { name: 'm', isLoaded: true, isExplicit: true }
const FILES = new Map([['1/f', Buffer.from('x')]])

await t.test(
  'a request comes after every one that is known, whatever the clock says',
  async (t) => {
    const { wanted, time } = open(t)
    const first = wanted.stamp(ASKED)
    t.match(first, { at: 1000, by: 'router-a' })
    t.equal(await wanted.take(first), true)
    time.now = 5
    const second = wanted.stamp({ ...ASKED, isLoaded: false })
    t.equal(second.at, 1001)
    t.equal(await wanted.take(second), true)
    t.equal(await wanted.take(first), false)
    t.equal(wanted.get('m')?.isLoaded, false)
    t.same(wanted.all, [second])
  },
)

await t.test('files are kept as long as their request holds', async (t) => {
  const { wanted, left } = open(t)
  await wanted.take(wanted.stamp(ASKED), FILES)
  t.equal(wanted.hasFiles('m'), true)
  t.same(await wanted.files('m'), FILES)
  t.equal(await wanted.take({ ...ASKED, at: 1, by: 'router-b' }, FILES), false)
  t.equal(await left(), 1, 'what is older is not written')
  await wanted.take(wanted.stamp(ASKED))
  t.equal(await left(), 0)
  t.equal(wanted.hasFiles('m'), false)
  t.same(await wanted.files('m'), new Map())
})

await t.test('of requests at the same time the newest holds', async (t) => {
  const { wanted, left } = open(t)
  const requests = [3, 1, 5, 2, 4].map((at) => ({ ...ASKED, at, by: 'router-b' }))
  await Promise.all(requests.map((request) => wanted.take(request, FILES)))
  t.equal(wanted.get('m')?.at, 5)
  t.equal(await left(), 1)
})

await t.test('at most 4096 names are remembered, the newest', async (t) => {
  const { wanted } = open(t)
  for (let i = 0; i < 4100; i++) await wanted.take(wanted.stamp({ ...ASKED, name: `m${i}` }))
  t.equal(wanted.all.length, 4096)
  t.equal(wanted.get('m3'), undefined)
  t.ok(wanted.get('m4099'))
})
