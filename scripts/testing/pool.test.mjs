import { setImmediate as turn } from 'node:timers/promises'
import { test } from 'tap'
import { runPool } from './pool.mjs'
import { watchProcessor } from './processor-room.mjs'

/** A pool whose tasks end when they are told to; `settled` resolves once nothing more begins by itself. */
function openPool(names, options) {
  const failure = new AbortController()
  const ends = new Map()
  const begun = []
  const work = (name) => {
    begun.push(name)
    return new Promise((resolve, reject) => ends.set(name, { resolve, reject }))
  }
  const ended = runPool(
    names.map((name) => ({ name, needs: [] })),
    {
      signal: failure.signal,
      provide: async () => ({}),
      fail: (reason) => failure.abort(reason),
      ...options,
    },
    ({ name }) => work(name),
  )
  const settled = async () => {
    for (let i = 0; i < 20; i += 1) await turn() // oxlint-disable-line no-await-in-loop
    return begun.join('')
  }
  return { ended, settled, end: (name) => ends.get(name).resolve(), ends }
}

await test('so many tasks run at once, in their order, and all of them', async (t) => {
  const pool = openPool(['a', 'b', 'c', 'd'], { jobs: 2 })
  t.equal(await pool.settled(), 'ab')
  pool.end('b')
  t.equal(await pool.settled(), 'abc')
  for (const name of ['a', 'c']) pool.end(name)
  t.equal(await pool.settled(), 'abcd')
  pool.end('d')
  await pool.ended
})

await test('more run while the processor has room, up to the bound', async (t) => {
  let hasRoom = false
  let begins = 0
  const processor = { hasRoom: () => hasRoom, begin: () => void (begins += 1) }
  const pool = openPool(['a', 'b', 'c', 'd', 'e', 'f'], { jobs: 2, most: 4, processor })
  t.equal(await pool.settled(), 'ab')
  hasRoom = true
  while ((await pool.settled()) !== 'abcd') continue
  t.equal(begins, 4, 'each begin is told')
  hasRoom = false
  pool.end('a')
  pool.end('b')
  t.equal(await pool.settled(), 'abcd', 'no more than two without room')
  pool.end('c')
  t.equal(await pool.settled(), 'abcde')
  for (const name of ['d', 'e']) pool.end(name)
  t.equal(await pool.settled(), 'abcdef')
  pool.end('f')
  await pool.ended
})

await test('a task that breaks ends the pool', async (t) => {
  const pool = openPool(['a', 'b', 'c'], { jobs: 2 })
  await pool.settled()
  pool.ends.get('a').reject(new Error('broken'))
  await t.rejects(pool.ended, { message: 'broken' })
  t.equal(await pool.settled(), 'ab')
})

await test('there is room once half a core was idle for two seconds since the last begin', (t) => {
  const now = { idleMs: 5000, totalMs: 90_000, cores: 2 }
  const pass = (wallMs, idleMs) => {
    now.totalMs += 2 * wallMs
    now.idleMs += idleMs
  }
  const processor = watchProcessor(() => ({ ...now }))
  pass(1900, 3800)
  t.notOk(processor.hasRoom(), 'too early to tell')
  pass(100, 0)
  t.ok(processor.hasRoom())
  t.notOk(processor.hasRoom(), 'each look begins anew')
  pass(2000, 990)
  t.notOk(processor.hasRoom(), 'it was busy')
  pass(2000, 1000)
  t.ok(processor.hasRoom())
  pass(1900, 3800)
  processor.begin()
  pass(1900, 3800)
  t.notOk(processor.hasRoom(), 'what was idle before something began does not count')
  t.end()
})

await test('the processor of this machine can be read', (t) => {
  t.equal(watchProcessor().hasRoom(), false)
  t.end()
})
