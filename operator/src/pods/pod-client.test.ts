import type { RequestListener } from 'node:http'
import { systemClock } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { type Test, test } from 'tap'
import { startPodServer } from '../testing/pod-server.ts'
import { createPodClient, type PodClientOptions } from './pod-client.ts'

const signal = new AbortController().signal

async function open(t: Test, o: Partial<PodClientOptions> & { listener?: RequestListener } = {}) {
  const { listener, ...options } = o
  const server = await startPodServer(listener === undefined ? {} : { listener })
  t.teardown(() => server.close())
  const client = createPodClient({ clock: systemClock, port: server.port, ...options })
  t.teardown(() => client.close())
  return { server, client, pod: { namespace: 'a', name: 'yolo-step-1', ip: server.ip } }
}

async function failureOf(promise: Promise<unknown>): Promise<ServeError> {
  const error = await promise.then(
    () => undefined,
    (failure: unknown) => failure,
  )
  if (error instanceof ServeError) return error
  throw new Error('want a ServeError', { cause: error })
}

await test('answers of routers and steps are parsed', async (t) => {
  const { server, client, pod } = await open(t)
  server.answer('/tutti/v1/load', { models: [{ name: 'm', inFlight: 1, queued: 2, slots: 4 }] })
  t.same(await client.loadOfStep(pod, { signal }), {
    models: [{ name: 'm', inFlight: 1, queued: 2, slots: 4 }],
  })
  server.answer('/tutti/v1/served', { models: [], accepted: ['m-1'], newer: true })
  t.same(await client.servedByRouter(pod, { signal }), { models: [], accepted: ['m-1'] })
  server.answer('/tutti/v1/served', { replica: 'r', models: [] })
  t.same(await client.servedByStep(pod, { signal }), { replica: 'r', models: [] })
})

await test('an answer that is none says which pod and which field', async (t) => {
  const { server, client, pod } = await open(t)
  server.answer('/tutti/v1/load', { models: [{ name: 'm', inFlight: -1, queued: 0, slots: 0 }] })
  const error = await failureOf(client.loadOfStep(pod, { signal }))
  t.equal(error.reason, 'MALFORMED_MESSAGE')
  t.match(error.message, /pod "yolo-step-1": load of a step: models\[0\]\.inFlight/)
})

const FAULTS: readonly {
  readonly name: string
  readonly listener: RequestListener
  readonly reason: string
  readonly text: RegExp
}[] = [
  {
    name: 'another status',
    listener: (_request, response) => void response.writeHead(503).end('no'),
    reason: 'POD_UNREACHABLE',
    text: /pod "yolo-step-1", 127\.0\.0\.1:\d+\/tutti\/v1\/load: HTTP 503, want 200/,
  },
  {
    name: 'no JSON',
    listener: (_request, response) => void response.end('# HELP'),
    reason: 'MALFORMED_MESSAGE',
    text: /the answer is no JSON/,
  },
  {
    name: 'a body without an end',
    listener: (_request, response) => {
      const write = (): void => void response.write('['.repeat(1000), write)
      write()
    },
    reason: 'MESSAGE_TOO_LARGE',
    text: /the answer is above 100000 bytes/,
  },
  {
    name: 'silence',
    listener: () => {},
    reason: 'DEADLINE_EXCEEDED',
    text: /no answer within 300 ms/,
  },
  {
    name: 'half an answer',
    listener: (_request, response) => void response.write('{', () => response.destroy()),
    reason: 'POD_UNREACHABLE',
    text: /aborted/,
  },
]

for (const { name, listener, reason, text } of FAULTS) {
  await test(`${name} is an error that says so`, async (t) => {
    const timeoutMs = reason === 'DEADLINE_EXCEEDED' ? 300 : 60_000
    const { client, pod } = await open(t, { listener, timeoutMs, maxBytes: 100_000 })
    const error = await failureOf(client.loadOfStep(pod, { signal }))
    t.equal(error.reason, reason)
    t.match(error.message, text)
  })
}

await test('half a character in an answer is replaced, as the API server would', async (t) => {
  const { client, pod } = await open(t, {
    listener: (_request, response) =>
      response.end(String.raw`{"models":[],"accepted":["a\ud83d","\ud83d\ude00"]}`),
  })
  const { accepted } = await client.servedByRouter(pod, { signal })
  t.same(accepted, ['a\ufffd', '\u{1F600}'])
})

await test('a pod that is gone is unreachable', async (t) => {
  const { server, client, pod } = await open(t)
  await server.close()
  t.equal((await failureOf(client.loadOfStep(pod, { signal }))).reason, 'POD_UNREACHABLE')
})

await test('a question ends when its signal aborts, with its reason', async (t) => {
  const asking = new AbortController()
  const { client, pod } = await open(t, { listener: () => asking.abort(new Error('enough')) })
  await t.rejects(client.loadOfStep(pod, { signal: asking.signal }), { message: 'enough' })
  await t.rejects(client.loadOfStep(pod, { signal: asking.signal }), { message: 'enough' })
})

await test('a kept connection that the pod closed just then does not fail a question', async (t) => {
  let requests = 0
  const { client, pod } = await open(t, {
    listener: (request, response) => {
      requests += 1
      if (requests === 2) request.socket.destroy()
      else response.end('{"models":[]}')
    },
  })
  await client.loadOfStep(pod, { signal })
  t.same(await client.loadOfStep(pod, { signal }), { models: [] })
  t.equal(requests, 3)
})

await test('silent pods of one namespace keep nobody of another waiting', async (t) => {
  const { server, client, pod } = await open(t, { timeoutMs: 4000 })
  server.answer('/tutti/v1/load', { models: [] })
  const ip = '127.0.0.2'
  const mute = await startPodServer({ ip, port: server.port, listener: () => {} })
  t.teardown(() => mute.close())
  const silent = Array.from({ length: 200 }, (_, i) => ({ ...pod, name: `silent-${i}`, ip }))
  const asked = silent.map((one) => failureOf(client.loadOfStep(one, { signal })))
  t.same(await client.loadOfStep({ ...pod, namespace: 'b' }, { signal }), { models: [] })
  for (const { reason } of await Promise.all(asked)) t.equal(reason, 'DEADLINE_EXCEEDED')
})
