import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import { OpenStreams } from './open-streams.ts'
import { ServerStream, type StreamSender } from './stream.ts'

const sender: StreamSender = {
  control: () => {},
  reset: () => {},
  headers: () => {},
  data: () => {},
  end: () => {},
}
const owner = { sender, windowBytes: 65_535, forget: () => {}, closed: () => {} }

function stream(id: number, queued = 0): ServerStream {
  const windows = { sendWindow: 65_535, receiveWindow: 65_535 }
  const o = { id, headers: {}, headerBytes: 0, hasEnded: false, bodyLeft: undefined, ...windows }
  const made = new ServerStream(owner, o)
  for (let i = 0; i < queued; i += 1) {
    const bytes = made.queue[0]?.bytes ?? new Uint8Array(0)
    const state = { taken: undefined, released: undefined, isOnWay: false, isOver: false }
    made.queue.push({ bytes, sent: i, ...state })
  }
  return made
}

await t.test('streams are found by their ids until they are deleted', (t) => {
  const open = new OpenStreams()
  const known = new Map<number, ServerStream>()
  for (let id = 1; id < 2000; id += 2) {
    const one = stream(id)
    open.add(one)
    known.set(id, one)
    // The oldest, the latest, or one in between.
    const ids = [...known.keys()]
    const leaving = known.get(ids[[0, ids.length - 1, ids.length >> 1][id % 3] ?? 0] ?? 0)
    if (id % 5 !== 0 && leaving !== undefined) {
      open.delete(leaving)
      open.delete(leaving)
      known.delete(leaving.id)
      t.equal(open.find(leaving.id), undefined)
    }
    t.equal(open.size, known.size)
    for (const [key, value] of known) if (open.find(key) !== value) t.fail(`no stream ${key}`)
  }
  t.same(new Set([...open].map(({ id }) => id)), new Set(known.keys()))
  t.end()
})

await t.test('what has left is free after a small collection', (t) => {
  setFlagsFromString('--expose-gc')
  const collect: (o?: { type: 'minor' }) => void = runInNewContext('gc')
  const used = (): number => {
    collect({ type: 'minor' })
    collect({ type: 'minor' })
    return getHeapStatistics().used_heap_size
  }
  const open = new OpenStreams()
  let id = 1
  const turn = (): void => {
    const batch = Array.from({ length: 64 }, () => stream((id += 2), 60))
    for (const one of batch) open.add(one)
    for (const one of batch) open.delete(one)
  }
  turn()
  // Everything that is there now is in the old space from here on.
  collect()
  const before = used()
  for (let i = 0; i < 400; i += 1) turn()
  const left = used() - before
  // With a Map it is all of their 60 MB.
  t.ok(left < 10e6, `${left} bytes`)
  t.end()
})
