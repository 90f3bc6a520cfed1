import t from 'tap'
import { revisionKey } from './replica-places.ts'
import { StepDirectory } from './step-directory.ts'

const m1 = { model: 'm', version: 1, revision: 'aaa' }
const m1other = { model: 'm', version: 1, revision: 'bbb' }

await t.test('only replicas of exactly the revision are chosen', async (t) => {
  const directory = new StepDirectory()
  directory.announce({ replica: 'a' }, [m1])
  directory.announce({ replica: 'b' }, [m1other])
  t.equal(directory.places.acquire(m1)?.address.replica, 'a')
  t.equal(directory.places.acquire(m1other)?.address.replica, 'b')
  t.equal(directory.places.acquire({ ...m1, version: 2 }), undefined)
  t.ok(directory.isServed(m1))
  t.notOk(directory.isServed({ ...m1, revision: 'ccc' }))
})

await t.test('a replica for several revisions serves all of them', async (t) => {
  const directory = new StepDirectory()
  const other = { model: 'n', version: 1, revision: 'ccc' }
  const keys = [m1, other].map(revisionKey)
  directory.announce({ replica: 'a' }, [m1])
  directory.announce({ replica: 'b' }, [other])
  t.equal(directory.places.acquireCommon(keys), undefined)
  directory.announce({ replica: 'c' }, [m1, other])
  directory.announce({ replica: 'd' }, [other, m1])
  const taken = [1, 2, 3, 4].map(() => directory.places.acquireCommon(keys, { workUs: 5 }))
  t.same(new Set(taken.map((one) => one?.address.replica)), new Set(['c', 'd']))
  t.same([taken[0]?.inFlight, taken[0]?.workUs], [2, 10])
  t.equal(directory.places.acquireCommon([]), undefined)
})

await t.test('what may not be used is not asked for, however it is announced', async (t) => {
  const directory = new StepDirectory()
  const allowed = new Set(['a aaa'])
  directory.announce({ replica: 'a' }, [m1, m1other])
  directory.announce({ replica: 'b' }, [m1])
  directory.restrict((replica, { revision }) => allowed.has(`${replica} ${revision}`))
  t.equal(directory.places.acquire(m1)?.address.replica, 'a')
  t.equal(directory.places.acquire(m1)?.address.replica, 'a')
  t.notOk(directory.isServed(m1other))
  allowed.clear()
  allowed.add('b aaa')
  directory.review('b')
  t.ok(directory.places.acquire(m1))
  directory.review()
  t.equal(directory.places.acquire(m1)?.address.replica, 'b')
  t.equal(directory.places.acquire(m1)?.address.replica, 'b')
  directory.announce({ replica: 'b' }, [m1other])
  t.notOk(directory.isServed(m1))
  t.notOk(directory.isServed(m1other))
  directory.announce({ replica: 'c' }, [m1])
  directory.suspect('c', true)
  t.equal(
    directory.whenDecided(m1, () => {}),
    undefined,
    'no caller waits for it',
  )
})

await t.test('the least busy replica is chosen, and equally busy ones take turns', async (t) => {
  const directory = new StepDirectory()
  directory.announce({ replica: 'a' }, [m1])
  directory.announce({ replica: 'b' }, [m1])
  const first = directory.places.acquire(m1)
  const second = directory.places.acquire(m1)
  t.not(first?.address.replica, second?.address.replica)
  if (first !== undefined) first.inFlight -= 1
  t.equal(directory.places.acquire(m1)?.address.replica, first?.address.replica)
})

await t.test(
  'a draining or removed replica gets nothing new; a new announcement replaces the old',
  async (t) => {
    const directory = new StepDirectory()
    directory.announce({ replica: 'a' }, [m1])
    directory.announce({ replica: 'b' }, [m1])
    t.equal(directory.takesWork('a'), true)
    directory.drain('a')
    t.same([directory.takesWork('a'), directory.takesWork('missing')], [false, false])
    t.equal(directory.places.acquire(m1)?.address.replica, 'b')
    t.equal(directory.places.acquire(m1)?.address.replica, 'b')
    directory.drain('a', false)
    t.equal(directory.takesWork('a'), true, 'taken back: somebody else had said it')
    directory.drain('a')
    directory.announce({ replica: 'b' }, [m1other])
    t.equal(directory.places.acquire(m1), undefined)
    directory.remove('b')
    t.equal(directory.places.acquire(m1other), undefined)
  },
)

await t.test('a replica to avoid is taken only if there is no other', async (t) => {
  const directory = new StepDirectory()
  directory.announce({ replica: 'a' }, [m1])
  directory.announce({ replica: 'b' }, [m1])
  for (let i = 0; i < 3; i++) {
    t.equal(
      directory.places.acquire(m1, { avoid: new Set(['a']) })?.address.replica,
      'b',
      'though it is busier',
    )
  }
  directory.remove('b')
  t.equal(directory.places.acquire(m1, { avoid: new Set(['a']) })?.address.replica, 'a')
})

const FREE = { inFlight: 0, queued: 0, freeSlots: 1, freeBytes: 1 }

await t.test('a suspect gets nothing until it is heard again', async (t) => {
  const directory = new StepDirectory()
  directory.announce({ replica: 'a' }, [m1])
  directory.suspect('a', true)
  directory.announce({ replica: 'a' }, [m1], FREE)
  t.notOk(directory.isServed(m1))
  t.equal(directory.places.acquire(m1), undefined)
  directory.suspect('a', false)
  t.equal(directory.places.acquire(m1)?.address.replica, 'a')
})

await t.test('who waits for a suspect is called at the next change, once', async (t) => {
  const directory = new StepDirectory()
  const never = (): void => void t.fail('called')
  t.equal(directory.whenDecided(m1, never), undefined, 'missing')
  directory.announce({ replica: 'a' }, [m1])
  t.equal(directory.whenDecided(m1, never), undefined, 'no replica is suspect')
  directory.suspect('a', true)
  const heard: string[] = []
  const again = (): void => {
    heard.push('first')
    directory.whenDecided(m1, () => heard.push('again'))
  }
  directory.whenDecided(m1, again)
  directory.whenDecided(m1, never)?.()
  directory.announce({ replica: 'b' }, [m1other])
  t.same(heard, ['first'], 'who waits again waits for the next change')
  directory.suspect('a', false)
  t.same(heard, ['first', 'again'])
})

await t.test('the announced load decides between equals', async (t) => {
  const directory = new StepDirectory()
  directory.announce({ replica: 'a' }, [m1], { ...FREE, inFlight: 3 })
  directory.announce({ replica: 'b' }, [m1], { ...FREE, inFlight: 1, queued: 1 })
  t.equal(directory.places.acquire(m1)?.address.replica, 'b')
  t.equal(directory.places.acquire(m1)?.address.replica, 'a', 'our own come first')
  directory.report('a', FREE)
  t.equal(directory.places.acquire(m1)?.address.replica, 'a')
  directory.report('missing', FREE)
})

await t.test('one that announces no free slot is taken only if all are full', async (t) => {
  for (const full of [
    { ...FREE, freeSlots: 0 },
    { ...FREE, freeBytes: 0 },
  ]) {
    const directory = new StepDirectory()
    directory.announce({ replica: 'full' }, [m1], full)
    directory.announce({ replica: 'busy' }, [m1], { ...FREE, inFlight: 9, freeSlots: 3 })
    for (let i = 0; i < 3; i++) t.equal(directory.places.acquire(m1)?.address.replica, 'busy')
    directory.report('busy', full)
    t.equal(directory.places.acquire(m1)?.address.replica, 'full')
  }
})

await t.test(
  'free slots that were announced are given once, until the next announcement',
  async (t) => {
    const directory = new StepDirectory()
    directory.announce({ replica: 'full' }, [m1], { ...FREE, freeSlots: 0 })
    directory.announce({ replica: 'free' }, [m1], { ...FREE, freeSlots: 2 })
    const take = (count: number) =>
      Array.from({ length: count }, () => directory.places.acquire(m1)?.address.replica)
    t.same(take(2), ['free', 'free'])
    const next = take(4).filter((replica) => replica === 'full')
    t.equal(next.length, 3, 'then our own are evened out')
    directory.report('free', { ...FREE, freeSlots: 1 })
    t.same(take(1), ['free'], 'what was sent before it is counted in it')
  },
)
