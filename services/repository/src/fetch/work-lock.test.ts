import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createManualClock, type ManualClock } from '@tutti/chassis/testing'
import t, { type Test } from 'tap'
import { WorkLock } from './work-lock.ts'

const { signal } = new AbortController()

function prepare(t: Test) {
  const folder = t.testdir()
  const path = join(folder, 'deeper/.model.fetch.lock')
  return { folder, path }
}

const soon = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/**
 * Moves the clock on by steps of a second.
 *
 * @param timers - those that wait between two steps: with fewer of them somebody still reads or writes.
 */
async function pass(
  clock: ManualClock,
  timers: number,
  until: () => boolean | Promise<boolean>,
): Promise<number> {
  const begun = clock.now()
  while (!(await until())) {
    if (clock.pending >= timers) clock.advance(1000)
    await soon()
  }
  return clock.now() - begun
}

await t.test('one has it, others wait until it is released', async (t) => {
  const { path } = prepare(t)
  const first = await WorkLock.take(path, { clock: createManualClock(), signal })
  t.notOk(first.hasWaited)
  const clock = createManualClock()
  let waits = 0
  const waiting = Promise.withResolvers<void>()
  let second: WorkLock | undefined
  const taken = WorkLock.take(path, {
    clock,
    signal,
    waiting: () => {
      waits += 1
      waiting.resolve()
    },
  })
  void taken.then((lock) => (second = lock))
  await waiting.promise
  await first.release()
  await pass(clock, 1, () => second !== undefined)
  t.match(second, { hasWaited: true })
  t.equal(waits, 1)
  await second?.release()
  t.same(await readdir(join(path, '..')), [])
})

await t.test('it is kept for as long as its holder lives', async (t) => {
  const { path } = prepare(t)
  const clock = createManualClock()
  const lock = await WorkLock.take(path, { clock, signal })
  const beats = new Set<string>()
  const stop = new AbortController()
  const other = WorkLock.take(path, { clock, signal: stop.signal })
  await pass(clock, 2, async () => beats.add(await readFile(path, 'utf8')).size >= 10)
  stop.abort(new Error('enough'))
  await t.rejects(other, { message: 'enough' })
  t.notOk(lock.lost.aborted)
  await lock.release()
})

await t.test('one that stands still was left behind', async (t) => {
  const { path } = prepare(t)
  const stopped = createManualClock()
  const dead = await WorkLock.take(path, { clock: stopped, signal })
  const clock = createManualClock()
  let lock: WorkLock | undefined
  void WorkLock.take(path, { clock, signal }).then((taken) => (lock = taken))
  const waitedMs = await pass(clock, 1, () => lock !== undefined)
  t.ok(waitedMs >= 15_000, `${waitedMs}`)
  await pass(stopped, 1, () => dead.lost.aborted)
  t.match(dead.lost.reason, { reason: 'ARTIFACT_NOT_STORED', message: /is another fetch's now/ })
  await dead.release()
  t.ok((await readFile(path, 'utf8')).length > 0, 'who lost it does not delete it')
  await lock?.release()
})

await t.test('of three who find one left behind, one has it', async (t) => {
  for (let round = 0; round < 20; round++) {
    const { path } = prepare(t)
    await WorkLock.take(path, { clock: createManualClock(), signal })
    const clock = createManualClock()
    const stop = new AbortController()
    const held: WorkLock[] = []
    const takers = [1, 2, 3].map(async () => {
      held.push(await WorkLock.take(path, { clock, signal: stop.signal }))
    })
    await pass(clock, takers.length, () => held.length > 0)
    const until = clock.now() + 60_000
    await pass(clock, takers.length, () => clock.now() >= until)
    t.equal(held.length, 1)
    t.notOk(held[0]?.lost.aborted)
    stop.abort(new Error('enough'))
    await Promise.allSettled(takers)
    await held[0]?.release()
  }
})

await t.test('what cannot be written is said', async (t) => {
  const { folder } = prepare(t)
  await writeFile(join(folder, 'file'), '')
  const taken = WorkLock.take(join(folder, 'file/lock'), { clock: createManualClock(), signal })
  await t.rejects(taken, { reason: 'ARTIFACT_NOT_STORED', message: /cannot be written/ })
  await rm(join(folder, 'file'))
})
