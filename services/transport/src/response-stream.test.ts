import t from 'tap'
import { deliverResponses, ResponseStream } from './response-stream.ts'

interface Word {
  readonly text: string
  readonly final: boolean
}

const word = (text: string, final = false): Word => ({ text, final })

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
