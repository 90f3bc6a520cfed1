import { RESPONSE_WINDOW } from '@tutti/tensor'
import t from 'tap'
import { deliverResponses, ResponseStream, type StreamedResponse } from './response-stream.ts'

interface Word extends StreamedResponse {
  readonly text: string
}

const word = (text: string, final = false, bytes = 0): Word => ({
  text,
  final,
  outputs: bytes === 0 ? [] : [{ data: new Uint8Array(bytes) }],
})

/** Notes what it is given. */
function notes() {
  const heard: string[] = []
  return {
    heard,
    received: ({ text }: Word) => void heard.push(text),
    failed: (error: unknown) => void heard.push(String(error)),
  }
}

await t.test('a receiver gets what is there at once and the rest as it comes', async (t) => {
  const stream = new ResponseStream<Word>()
  stream.send(word('a'))
  const receiver = notes()
  deliverResponses(stream, receiver)
  t.same(receiver.heard, ['a'])
  stream.send(word('b'))
  stream.send(word('c', true))
  stream.send(word('late'))
  stream.fail(new Error('late'))
  t.same(receiver.heard, ['a', 'b', 'c'])
  t.equal(stream.ended, true)
})

await t.test('a receiver gets the error, before or after it came', async (t) => {
  const early = new ResponseStream<Word>()
  early.send(word('a'))
  early.fail(new Error('broken'))
  const late = new ResponseStream<Word>()
  for (const stream of [early, late]) {
    const receiver = notes()
    stream.deliver(receiver)
    if (stream === late) {
      stream.send(word('a'))
      stream.fail(new Error('broken'))
    }
    t.same(receiver.heard, ['a', 'Error: broken'])
  }
})

async function* words(): AsyncGenerator<Word> {
  yield word('a')
  throw new Error('broken')
}

await t.test('any other source is gone through for the receiver', async (t) => {
  const ended = Promise.withResolvers<void>()
  const receiver = notes()
  deliverResponses(words(), {
    received: receiver.received,
    failed: (error) => {
      receiver.failed(error)
      ended.resolve()
    },
  })
  await ended.promise
  t.same(receiver.heard, ['a', 'Error: broken'])
})

await t.test('an iteration that is stopped drops what comes', async (t) => {
  const stream = new ResponseStream<Word>()
  const waiting = stream.next()
  await stream.return()
  t.same(await waiting, { done: true, value: undefined })
  stream.send(word('late', true))
  t.same(await stream.next(), { done: true, value: undefined })
})

/** Sends as a producer that heeds the reader, until there is no room. @returns how many went, and the promise of room. */
function fill(stream: ResponseStream<Word>, bytes = 0) {
  let sent = 0
  for (;;) {
    const room = stream.room()
    if (room !== undefined) return { sent, room }
    stream.send(word(String(sent), false, bytes))
    sent += 1
  }
}

await t.test(
  'a producer has room for a window of responses, and for more as they are read',
  async (t) => {
    const stream = new ResponseStream<Word>()
    const { sent, room } = fill(stream)
    t.equal(sent, RESPONSE_WINDOW.responses)
    t.equal((await stream.next()).value?.text, '0')
    await room
    t.equal(fill(stream).sent, 1)
  },
)

await t.test('large responses use the window up by their bytes', async (t) => {
  const stream = new ResponseStream<Word>()
  const { sent, room } = fill(stream, RESPONSE_WINDOW.bytes / 4)
  t.equal(sent, 4)
  await stream.next()
  await room
})

await t.test('who waits for room is let go when the stream ends, whatever ends it', async (t) => {
  const ends: readonly ((stream: ResponseStream<Word>) => void)[] = [
    (stream) => stream.send(word('last', true)),
    (stream) => stream.fail(new Error('broken')),
    (stream) => void stream.return(),
    (stream) => stream.deliver(notes()),
  ]
  for (const end of ends) {
    const stream = new ResponseStream<Word>()
    const { room } = fill(stream)
    end(stream)
    await room
    t.equal(stream.room(), undefined)
  }
})

await t.test('a producer that does not heed the reader at all ends the stream', async (t) => {
  const stream = new ResponseStream<Word>()
  for (let i = 0; i < 3000; i += 1) stream.send(word(String(i)))
  t.equal(stream.ended, true)
  let read = 0
  const failure = await (async () => {
    for await (const { text } of stream) t.equal(text, String(read++))
  })().catch((error: unknown) => error)
  t.match(failure, { reason: 'OVERLOADED' })
  t.equal(read, 2048)
})

await t.test('a receiver says itself whether there is room, to any kind of source', async (t) => {
  const stream = new ResponseStream<Word>()
  const room = Promise.withResolvers<void>()
  stream.deliver({ ...notes(), room: () => room.promise })
  t.equal(stream.room(), room.promise)

  let pulled = 0
  async function* source(): AsyncGenerator<Word> {
    for (; pulled < 3; pulled += 1) yield word(String(pulled), pulled === 2)
  }
  const receiver = notes()
  const asked = Promise.withResolvers<void>()
  deliverResponses(source(), {
    ...receiver,
    room: () => {
      asked.resolve()
      return room.promise
    },
  })
  await asked.promise
  t.same(
    [receiver.heard, pulled],
    [['0'], 0],
    'the source is not asked for what there is no room for',
  )
})
