import { assert, constantFrom, json, jsonValue, oneof, property, record, string } from 'fast-check'
import t from 'tap'
import { KubeError } from '../kube-error.ts'
import { parseEvent, readEvents } from './read-events.ts'

const META = { name: 'a', uid: 'u', resourceVersion: '5' }

const parse = (event: unknown) => parseEvent(JSON.stringify(event), '/x')

async function* lines(): AsyncGenerator<string> {
  yield JSON.stringify({ type: 'ADDED', object: { metadata: META } })
  yield '{"type":"ADD'
}

await t.test('changes and bookmarks are told apart', async (t) => {
  for (const type of ['ADDED', 'MODIFIED', 'DELETED'] as const) {
    t.same(parse({ type, object: { metadata: META, data: 1 } }), {
      type,
      object: { metadata: META, data: 1 },
    })
  }
  const bookmark = { type: 'BOOKMARK', object: { metadata: { resourceVersion: '7' } } }
  t.same(parse(bookmark), { type: 'BOOKMARK', resourceVersion: '7', isInitialEnd: false })
  const annotations = { 'k8s.io/initial-events-end': 'true' }
  const end = { type: 'BOOKMARK', object: { metadata: { resourceVersion: '7', annotations } } }
  t.same(parse(end), { type: 'BOOKMARK', resourceVersion: '7', isInitialEnd: true })
})

await t.test('what the server calls an error is thrown', async (t) => {
  const status = { kind: 'Status', code: 410, reason: 'Expired', message: 'too old' }
  const line = JSON.stringify({ type: 'ERROR', object: status })
  t.throws(() => parseEvent(line, '/x'), /too old/)
  t.throws(() => parseEvent('{"type":"ERROR"}', '/x'), /gave status 500/)
})

await t.test('no line breaks it: an event, or a KubeError that shows the line', async (t) => {
  const odd = oneof(
    string(),
    json(),
    record({
      type: oneof(string(), constantFrom('ADDED', 'DELETED', 'BOOKMARK', 'ERROR', 1)),
      object: oneof(
        jsonValue(),
        record({ metadata: jsonValue(), code: jsonValue(), details: jsonValue() }),
        record({ metadata: record({ name: string(), uid: jsonValue() }) }),
      ),
    }).map((event) => JSON.stringify(event)),
  )
  assert(
    property(odd, (line) => {
      try {
        const event = parseEvent(line, '/x')
        return event.type === 'BOOKMARK' || event.object.metadata.name.length >= 0
      } catch (error) {
        return error instanceof KubeError
      }
    }),
    { numRuns: 500 },
  )
  t.throws(() => parseEvent('hello', '/x'), /\/x: got "hello", want an event of a watch/)
})

await t.test('a stream gives its events until one cannot be read', async (t) => {
  const types: string[] = []
  const read = async (): Promise<void> => {
    for await (const { type } of readEvents(lines(), '/x')) types.push(type)
  }
  await t.rejects(read(), { message: /want an event of a watch/ })
  t.same(types, ['ADDED'])
})
