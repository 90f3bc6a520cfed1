// needs: nats
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { startProcess, until } from '@tutti/chassis/testing'
import t from 'tap'
import { openClient } from '../grpc-client.ts'
import { restCall } from '../rest-call.ts'
import { ask } from './asking.ts'
import { SKIP, startHarness } from './harness.ts'
import { startLoad } from './load.ts'
import { ENDLESS, slowQuestion } from './questions.ts'
import { logged, mark, successes, untilReady } from './seen.ts'

t.setTimeout(300_000)

/** A client of `slow` whose `x` and `y` are in shared memory. Its arguments: the address, the key, the rounds. */
const SHARING_CLIENT = `
const [url, key, rounds] = process.argv.slice(1)
const post = async (path, body) => {
  const answer = await fetch(\`\${url}/\${path}\`, { method: 'POST', body: JSON.stringify(body) })
  const text = await answer.text()
  if (!answer.ok) throw new Error(text)
}
const at = (shared_memory_offset) => ({
  shared_memory_region: key, shared_memory_offset, shared_memory_byte_size: 4,
})
await post(\`systemsharedmemory/region/\${key}/register\`, { key, byte_size: 8 })
await post('models/slow/infer', {
  inputs: [
    { name: 'x', datatype: 'FP32', shape: [1], parameters: at(0) },
    { name: 'rounds', datatype: 'INT64', shape: [1], data: [Number(rounds)] },
  ],
  outputs: [{ name: 'y', parameters: at(4) }],
})
`

await t.test('two routers share two replicas', { skip: SKIP }, async (t) => {
  const harness = await startHarness(t)
  const step = () => harness.step({ models: ['slow'] })
  const [one, other, left, right] = await Promise.all([
    harness.router({ flags: ['--allow-client-shm'] }),
    harness.router(),
    step(),
    step(),
  ])
  const routers = [one, other]
  await untilReady(routers, ['ens_slow'])
  for (const router of routers) {
    for (const { id } of [left, right]) {
      await logged(router.process, 0, 'step announced', { replica: id })
    }
  }
  const [toLeft, toRight] = [openClient(t, left), openClient(t, right)]
  const counts = async () =>
    [await successes(toLeft, 'slow'), await successes(toRight, 'slow')] as const

  const allIdle = () => Promise.all([left, right].map(({ id }) => harness.watch.idle(id)))
  const inFlight = () => [left, right].map(({ id }) => harness.watch.latest(id)?.inFlight ?? 0)

  await t.test('each serves, and every request runs once', async (t) => {
    const load = startLoad(t, { targets: routers, clients: 8, question: () => slowQuestion(20) })
    await load.more(200)
    t.same(
      (await load.stop()).filter(({ kind }) => kind !== 'right'),
      [],
    )
    const [atLeft, atRight] = await counts()
    t.equal(atLeft + atRight, load.right, 'every request ran once')
    const [least, most] = [Math.min(atLeft, atRight), Math.max(atLeft, atRight)]
    // Who has more of the machine serves more: this is no matter of ours.
    t.ok(least * 3 >= most, `${atLeft} and ${atRight} requests`)
  })

  await t.test('a replica that is slower gets less', async (t) => {
    const [leftBefore, rightBefore] = await counts()
    const own = startLoad(t, { targets: [left], clients: 6, question: () => slowQuestion(400) })
    await own.more(6)
    const load = startLoad(t, { targets: routers, clients: 8, question: () => slowQuestion(20) })
    await load.more(200)
    const outcomes = [...(await load.stop()), ...(await own.stop())]
    t.same(
      outcomes.filter(({ kind }) => kind !== 'right'),
      [],
    )
    const [leftAfter, rightAfter] = await counts()
    const atLeft = leftAfter - leftBefore - own.right
    const atRight = rightAfter - rightBefore
    t.equal(atLeft + atRight, load.right, 'every request ran once')
    t.ok(atLeft * 2 <= atRight, `${atLeft} requests to the slow one, ${atRight} to the other`)
  })

  await t.test('a client with shared memory is killed, and the next one served', async (t) => {
    const key = `tutti_test_${process.pid}`
    const path = `/dev/shm/${key}`
    writeFileSync(path, Buffer.from(Float32Array.of(1, 0).buffer))
    t.teardown(() => rmSync(path, { force: true }))
    const { httpPort } = one
    const url = `http://127.0.0.1:${httpPort}/v2`
    await allIdle()
    const descriptors = () => readdirSync(`/proc/${one.process.pid}/fd`).length
    const before = descriptors()
    const start = (rounds: number) =>
      startProcess(process.execPath, [
        '--input-type=module',
        '-e',
        SHARING_CLIENT,
        url,
        key,
        `${rounds}`,
      ])
    // Long enough to be killed, and not for long: a run of ONNX Runtime goes on without its client.
    const client = await start(10_000)
    t.teardown(() => client.stop('SIGKILL'))
    await until('its request runs', () => inFlight().some((count) => count > 0))
    const unregister = () =>
      restCall(httpPort, 'POST', `/v2/systemsharedmemory/region/${key}/unregister`)
    t.match((await unregister()).json(), { error: /it is currently in use/ })
    await client.stop('SIGKILL')
    await allIdle()
    await until('its region can go', async () => (await unregister()).status === 200)
    await until('its descriptors are gone', () => descriptors() <= before)
    t.same(readShared(path), [1, 0], 'nothing was written')
    const next = await start(1)
    t.teardown(() => next.stop('SIGKILL'))
    t.match(await next.exited, { code: 0 })
    t.same(readShared(path), [1, 1])
  })

  await t.test('evenly, whatever each makes of it', async (t) => {
    const clients = routers.map((router) => openClient(t, router))
    /** Has 32 requests in flight at once. @returns how many each replica got; undefined if one seemed dead for a moment. */
    const place = async () => {
      const marks = routers.map((router) => mark(router.process))
      for (const { id } of [left, right]) await harness.watch.idle(id)
      const cancel = new AbortController()
      const { signal } = cancel
      const asked = clients.flatMap((client) =>
        Array.from({ length: 16 }, () => ask(client, slowQuestion(ENDLESS), { signal })),
      )
      const counts = await until(
        () => `32 are placed, not ${inFlight().join(' and ')}`,
        () => inFlight().reduce((sum, count) => sum + count) === 32 && inFlight(),
      )
      cancel.abort()
      await Promise.all(asked)
      const isSuspected = routers.some(({ process }, i) =>
        process.lines.slice(marks[i]).some((line) => line.includes('member is suspect')),
      )
      return isSuspected ? undefined : counts
    }
    const [atLeft = 0, atRight = 0] = await until('no replica seems dead', place)
    // Who has just announced an idle instance gets what fits it first.
    t.ok(Math.abs(atLeft - atRight) <= 8, `${atLeft} and ${atRight} requests`)
  })
})

function readShared(path: string): readonly number[] {
  return [...new Float32Array(Uint8Array.from(readFileSync(path)).buffer)]
}
