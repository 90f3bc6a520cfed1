import type { RequestListener } from 'node:http'
import { systemClock } from '@tutti/chassis'
import { createManualClock } from '@tutti/chassis/testing'
import { ServeError } from '@tutti/errors'
import { type Test, test } from 'tap'
import { startPodServer } from '../testing/pod-server.ts'
import { settle } from '../testing/settle.ts'
import { createPodClient, type PodClientOptions } from './pod-client.ts'

const signal = new AbortController().signal

async function open(t: Test, o: Partial<PodClientOptions> & { listener?: RequestListener } = {}) {
  const { listener, ...options } = o
  const server = await startPodServer(listener === undefined ? {} : { listener })
  t.teardown(() => server.close())
  const client = createPodClient({ clock: systemClock, port: server.port, ...options })
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
  server.answer('/tutti/v1/wanted?seen=a%20b', { seen: 'c', models: ['m'] })
  const wanted = await client.wantedByRouter(pod, { signal, seen: 'a b' })
  t.same(wanted, { seen: 'c', models: ['m'] })
})

await test('questions that stay open keep no other waiting', async (t) => {
  const { client, pod, server } = await open(t, {
    maxConnections: 1,
    listener: ({ url }, response) => {
      if (url === '/tutti/v1/served') response.end(JSON.stringify({ models: [], accepted: [] }))
    },
  })
  const leaving = new AbortController()
  const questions = Array.from({ length: 8 }, () =>
    failureOf(client.wantedByRouter(pod, { signal: leaving.signal, seen: '' })),
  )
  while ((server.asked.get('/tutti/v1/wanted?seen=') ?? 0) < 8) await settle()
  t.same(await client.servedByRouter(pod, { signal }), { models: [], accepted: [] })
  leaving.abort(new ServeError('CANCELLED', 'the test is over'))
  for (const { reason } of await Promise.all(questions)) t.equal(reason, 'CANCELLED')
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

function many(item: unknown, count: number): readonly unknown[] {
  return Array.from({ length: count }, () => item)
}

await test('what answers that are long and wrong cost is bounded', async (t) => {
  const { server, client, pod } = await open(t)
  const answers: readonly (readonly [object, RegExp])[] = [
    [{ models: [], accepted: many(1, 300_000) }, /the answer is JSON of more than 262144 values/],
    [{ models: many({}, 200_000), accepted: [] }, /the answer is JSON of more than 262144 values/],
    [{ models: [], accepted: many('x'.repeat(100), 50_000) }, /above 4194304 bytes/],
    [{ models: [], accepted: many(1, 200_000) }, /: accepted\[0\]: /],
  ]
  for (const [answer, text] of answers) {
    server.answer('/tutti/v1/served', answer)
    const { message, cause } = await failureOf(client.servedByRouter(pod, { signal }))
    t.match(message, text)
    // A fault that is there 200,000 times is told once.
    const told: unknown = Object(cause).cause?.issues?.length ?? 0
    t.equal(told, message.includes('accepted[0]') ? 1 : 0)
  }
  server.answer('/tutti/v1/served', { replica: 'r', models: many({}, 70_000) })
  const ofStep = await failureOf(client.servedByStep(pod, { signal }))
  t.match(ofStep.message, /the answer is JSON of more than 131072 values/)
  server.answer('/tutti/v1/load', { models: many({}, 40_000) })
  const load = await failureOf(client.loadOfStep(pod, { signal }))
  t.match(load.message, /the answer is JSON of more than 65536 values/)
})

await test('answers that are long and do not end leave memory and others alone', async (t) => {
  const long = ' '.repeat(0.75 * 2 ** 20)
  let isEnding = false
  const { client, pod } = await open(t, {
    maxHeldBytes: 2 ** 20,
    timeoutMs: 60_000,
    listener: ({ url }, response) => {
      if (url === '/tutti/v1/load') response.end('{"models":[]}')
      else if (isEnding) response.end(`${long}{"models":[],"accepted":[]}`)
      else response.write(long)
    },
  })
  const { promise: twoRefused, resolve } = Promise.withResolvers<void>()
  const stop = new AbortController()
  const failures: unknown[] = []
  const asked = ['b', 'c', 'd'].map(async (namespace) => {
    failures.push(await failureOf(client.servedByRouter({ ...pod, namespace }, stop)))
    if (failures.length === 2) resolve()
  })
  await twoRefused
  const refused = { reason: 'OVERLOADED', message: /the answer is long, and so are those/ }
  t.match(failures, [refused, refused])
  t.same(await client.loadOfStep(pod, { signal }), { models: [] }, 'small answers are read')
  stop.abort(new ServeError('CANCELLED', 'enough'))
  await Promise.all(asked)
  t.match(failures[2], { reason: 'CANCELLED' })
  isEnding = true
  t.same(await client.servedByRouter(pod, { signal }), { models: [], accepted: [] })
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

await test('silent pods of one namespace delay no other namespace', async (t) => {
  const { server, client, pod } = await open(t, { timeoutMs: 4000 })
  server.answer('/tutti/v1/load', { models: [] })
  const ip = '127.0.0.2'
  const mute = await startPodServer({ ip, port: server.port, listener: () => {} })
  t.teardown(() => mute.close())
  const silent = Array.from({ length: 200 }, (_, i) => ({ ...pod, name: `silent-${i}`, ip }))
  const asked = silent.map((one) => failureOf(client.loadOfStep(one, { signal })))
  t.same(await client.loadOfStep({ ...pod, namespace: 'b' }, { signal }), { models: [] })
  for (const { reason } of await Promise.all(asked)) {
    t.match(reason, /^(DEADLINE_EXCEEDED|OVERLOADED)$/)
  }
})

/** Two pods that answer and one that is silent, on a clock that stands still. */
async function openBeside(t: Test, o: Partial<PodClientOptions>) {
  const clock = createManualClock()
  const { server, client, pod } = await open(t, { clock, timeoutMs: 5000, ...o })
  const { port } = server
  const other = await startPodServer({ ip: '127.0.0.3', port })
  const mute = await startPodServer({ ip: '127.0.0.2', port, listener: () => {} })
  for (const one of [other, mute]) t.teardown(() => one.close())
  for (const one of [server, other]) {
    one.answer('/tutti/v1/load', { models: [] })
    one.answer('/tutti/v1/served', { models: [], accepted: [] })
  }
  const at = (name: string, { ip }: { readonly ip: string }) => ({ ...pod, name, ip })
  return { clock, client, fine: pod, other: at('other', other), mute: at('mute', mute) }
}

await test('a question that waits for others ends with its signal, and goes on once they have ended', async (t) => {
  const { clock, client, fine, other, mute } = await openBeside(t, { maxConnections: 1 })
  const silent = failureOf(client.loadOfStep(mute, { signal }))
  clock.advance(3000)
  const asking = new AbortController()
  const left = client.loadOfStep(fine, { signal: asking.signal })
  asking.abort(new Error('enough'))
  await t.rejects(left, { message: 'enough' })
  const last = client.loadOfStep(other, { signal })
  clock.advance(2000)
  t.match((await silent).message, /pod "mute", .*: no answer within 5000 ms/)
  t.same(await last, { models: [] })
})

await test('what was not asked in time says so', async (t) => {
  const { clock, client, fine, mute } = await openBeside(t, { maxConnections: 1 })
  const silent = failureOf(client.loadOfStep(mute, { signal }))
  const behind = failureOf(client.loadOfStep(fine, { signal }))
  await settle()
  clock.advance(5000)
  t.match(await behind, {
    reason: 'OVERLOADED',
    message: /pod "yolo-step-1", .*: not asked within 5000 ms/,
  })
  t.equal((await silent).reason, 'DEADLINE_EXCEEDED')
  t.same(await client.loadOfStep(fine, { signal }), { models: [] })
})

await test('routers do not wait for steps', async (t) => {
  const { clock, client, fine, mute } = await openBeside(t, { maxConnections: 1 })
  const silent = failureOf(client.loadOfStep(mute, { signal }))
  t.same(await client.servedByRouter(fine, { signal }), { models: [], accepted: [] })
  clock.advance(5000)
  await silent
})
