import t from 'tap'
import { addFrame, MOST_ANSWERS, NO_ANSWERS, type StreamedAnswers } from './streamed-answers.ts'

/** A response with one text. */
function token(text: string) {
  const bytes = new TextEncoder().encode(text)
  const data = Buffer.alloc(4 + bytes.byteLength)
  data.writeUInt32LE(bytes.byteLength)
  data.set(bytes, 4)
  const parameters = { binary_data_size: data.byteLength }
  const outputs = [{ name: 'text', datatype: 'BYTES', shape: [1], parameters }]
  return { json: JSON.stringify({ model_name: 'm', model_version: '2', outputs }), data }
}

const NONE = new Uint8Array()

await t.test('the last responses are kept, and texts are one text', async (t) => {
  let all: StreamedAnswers = NO_ANSWERS
  for (let i = 0; i < 30; i += 1) all = addFrame(all, token(`${i} `))
  t.equal(all.count, 30)
  t.equal(all.answers.length, MOST_ANSWERS)
  t.equal(all.answers[0]?.modelVersion, '2')
  t.equal(all.texts.get('text'), Array.from({ length: 30 }, (_, i) => `${i} `).join(''))
  all = addFrame(all, token('x'.repeat(50_000)))
  t.equal(all.texts.get('text')?.length, 20_000, 'however long it is')
})

await t.test('a failure and the steps follow what has come', async (t) => {
  const one = addFrame(NO_ANSWERS, token('a'))
  const failed = addFrame(one, { json: '{"error":"no","reason":"ENGINE_FAILED"}', data: NONE })
  t.match(failed, { count: 1, failure: 'no', reason: 'ENGINE_FAILED' })
  const ended = addFrame(failed, { json: '{"steps":{"spans":[],"leftOut":3}}', data: NONE })
  t.match(ended, { count: 1, failure: 'no', recorded: { leftOut: 3 } })
  t.throws(() => addFrame(one, { json: '{"other":1}', data: NONE }))
  t.throws(() => addFrame(one, { ...token('abc'), data: NONE }), /has 0 bytes/)
})
