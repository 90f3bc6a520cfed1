import t from 'tap'
import { loadOrtLibrary } from './ort-library.ts'
import { type RunThread, RunThreads, type ThreadCall } from './run-threads.ts'
import { RELEASE_SESSION, RING_CALLS } from './thread-mailbox.ts'

/** To release no session does nothing. */
const NOTHING = { function: RELEASE_SESSION, args: [0], held: undefined }

function callOn(thread: RunThread): Promise<Parameters<ThreadCall['done']>> {
  return new Promise((resolve) => thread.post({ ...NOTHING, done: (...args) => resolve(args) }))
}

await t.test('calls are done in order, however many are posted at once', async (t) => {
  const threads = new RunThreads(loadOrtLibrary().threadFunctions)
  threads.resize(1)
  const thread = threads.take()
  const order: number[] = []
  const count = 3 * RING_CALLS + 1
  const calls = Array.from({ length: count }, async (_, i) => {
    const [result, beginNs, endNs] = await callOn(thread)
    order.push(i)
    t.ok(result === 0 && beginNs > 0 && endNs >= beginNs)
  })
  await Promise.all(calls)
  t.same(
    order,
    calls.map((_, i) => i),
  )
  threads.give(thread)
  t.equal(threads.take(), thread, 'a thread is used again')
  threads.give(thread)
  threads.resize(-1)
})

await t.test('threads over the number of instances end', async (t) => {
  const threads = new RunThreads(loadOrtLibrary().threadFunctions)
  threads.resize(2)
  const [first, second] = [threads.take(), threads.take()]
  await Promise.all([first, second].map(callOn))
  threads.give(first)
  threads.resize(-1)
  threads.give(second)
  threads.resize(-1)
  for (const thread of [first, second]) {
    const [result] = await callOn(thread)
    t.match(result, { reason: 'ENGINE_STOPPED', message: /no error was reported$/ })
  }
})

await t.test('a thread that ends by itself fails its calls, and is replaced', async (t) => {
  const module = new URL('../testing/faulty-run-thread.ts', import.meta.url)
  const threads = new RunThreads([], module)
  threads.resize(1)
  const thread = threads.take()
  const results = await Promise.all([callOn(thread), callOn(thread)])
  for (const [result] of results) {
    t.match(result, {
      reason: 'ENGINE_STOPPED',
      code: 'UNAVAILABLE',
      message: 'the engine thread ended: threw as ordered',
    })
  }
  const [late] = await callOn(thread)
  t.match(late, { reason: 'ENGINE_STOPPED' })
  threads.give(thread)
  const other = threads.take()
  t.not(other, thread)
  await callOn(other)
})
