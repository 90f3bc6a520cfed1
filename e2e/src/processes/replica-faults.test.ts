// needs: nats, redis

import { startRedisServer, until, withoutRedisServer } from '@tutti/chassis/testing'
import t, { type Test } from 'tap'
import { openClient, statisticsOf } from '../grpc-client.ts'
import type { Target } from '../serving.ts'
import { copyModels } from '../temp-repository.ts'
import { ask, describe, isClean, unclean } from './asking.ts'
import { SKIP, startHarness } from './harness.ts'
import { startLoad } from './load.ts'
import {
  chainQuestion,
  ENDLESS,
  identityQuestion,
  mixedQuestion,
  slowQuestion,
} from './questions.ts'
import { isOk, logged, mark, successes, untilReady } from './seen.ts'

t.setTimeout(300_000)

const MODELS = ['slow', 'add_one_batch', 'versioned', 'big_identity']

await t.test('kill -9 of replicas under load', { skip: SKIP }, async (t) => {
  const harness = await startHarness(t)
  const [router, first, second] = await Promise.all([
    harness.router(),
    harness.step({ models: MODELS }),
    harness.step({ models: MODELS }),
  ])
  await untilReady([router], ['ens_chain', 'ens_slow', 'ens_versioned', 'big_identity'])

  await t.test('one of two: each request is answered once, and the other serves', async (t) => {
    const load = startLoad(t, { targets: [router], clients: 10, question: mixedQuestion })
    await load.more(30)
    const killed = mark(router.process)
    first.process.kill('SIGKILL')
    await load.more(10)
    await logged(router.process, killed, 'member is gone', { member: first.id })
    const after = load.asked
    await load.more(20)
    const outcomes = await load.stop()
    t.same(unclean(outcomes), [], 'right, or an error that says what happened')
    const later = outcomes.slice(after).filter(({ kind }) => kind !== 'right')
    t.same(later.map(describe), [], 'once it is known to be dead, no request fails')
  })

  await t.test('the last one: what waits there fails, then nothing is ready', async (t) => {
    const client = openClient(t, router)
    await harness.watch.idle(second.id)
    const asked = Array.from({ length: 6 }, () => ask(client, slowQuestion(ENDLESS)))
    await harness.watch.next(second.id, 'has all', (h) => h.inFlight >= 6)
    const killed = mark(router.process)
    second.process.kill('SIGKILL')
    const outcomes = await Promise.all(asked)
    for (const outcome of outcomes) t.match(outcome, { code: 'UNAVAILABLE', reason: 'STEP_LOST' })
    await logged(router.process, killed, 'member is gone', { member: second.id })
    const ready = `http://127.0.0.1:${router.httpPort}/v2/models/ens_slow/ready`
    await until('the ensemble is not ready', async () => !(await isOk(ready)))
    const refused = await ask(client, slowQuestion(1))
    t.ok(isClean(refused) && refused.kind === 'error', describe(refused))
  })

  await t.test('a new one is found and serves', async (t) => {
    const third = await harness.step({ models: MODELS })
    await untilReady([router], ['ens_slow'])
    const client = openClient(t, router)
    t.same(await ask(client, slowQuestion(1, 'ens_slow')), { kind: 'right' })
    t.equal(await successes(openClient(t, third), 'slow'), 2)
  })
})

await t.test('SIGSTOP of a replica', { skip: SKIP }, async (t) => {
  const harness = await startHarness(t)
  const [router, stopped, other] = await Promise.all([
    harness.router(),
    harness.step({ models: ['slow'] }),
    harness.step({ models: ['slow'] }),
  ])
  await untilReady([router], ['slow'])
  const client = openClient(t, router)
  const [toStopped, toOther] = [openClient(t, stopped), openClient(t, other)]
  await until('the router sends to both', async () => {
    await Promise.all([0, 1].map(() => ask(client, slowQuestion(5))))
    const counts = [toStopped, toOther].map((replica) => successes(replica, 'slow'))
    return (await Promise.all(counts)).every((count) => count > 0)
  })
  // One for each, and each keeps an instance for other work.
  const areBusy = [stopped, other].map(({ id }) =>
    harness.watch.next(id, 'has work', (h) => h.inFlight === 1),
  )
  const cancel = new AbortController()
  const asked = [0, 1].map(() => ask(client, slowQuestion(ENDLESS), { signal: cancel.signal }))
  await Promise.all(areBusy)
  const from = mark(router.process)
  stopped.process.kill('SIGSTOP')
  const suspected = await logged(router.process, from, 'member is suspect', { member: stopped.id })

  await t.test('a suspect gets no new work', async (t) => {
    const before = await successes(toOther, 'slow')
    const now = Array.from({ length: 8 }, () => ask(client, slowQuestion(1)))
    for (const outcome of await Promise.all(now)) t.same(outcome, { kind: 'right' })
    t.equal((await successes(toOther, 'slow')) - before, 8, 'all went to the other')
  })

  await t.test('then it is dead, and what it had fails', async (t) => {
    await logged(router.process, suspected, 'member is gone', { member: stopped.id })
    t.match(await Promise.race(asked), { code: 'UNAVAILABLE', reason: 'STEP_LOST' })
    cancel.abort()
    const outcomes = await Promise.all(asked)
    const kept = outcomes.filter((o) => o.kind === 'error' && o.code === 'CANCELLED')
    t.equal(kept.length, 1, outcomes.map(describe).join('; '))
  })

  await t.test('SIGCONT brings it back', async (t) => {
    const continued = mark(router.process)
    stopped.process.kill('SIGCONT')
    await logged(router.process, continued, 'member appeared', { member: stopped.id })
    // An execution that was under way when it was stopped goes on, although its caller has left.
    await harness.watch.idle(stopped.id)
    const before = await successes(toStopped, 'slow')
    const load = startLoad(t, { targets: [router], clients: 4, question: () => slowQuestion(5) })
    await until('it serves again', async () => (await successes(toStopped, 'slow')) > before)
    t.same(unclean(await load.stop()), [])
  })
})

const SEEDS = [...Array(12).keys()]
const IDENTITIES = SEEDS.map((seed) => identityQuestion(100_000, seed))
const CHAINS = SEEDS.map((seed) => chainQuestion(seed))
const CACHE = 'response_cache { enable: true }'
const LIMIT = 'instance_group { count: 2 rate_limiter { resources { name: "r" count: 1 } } }'

const skip = SKIP === false ? withoutRedisServer() : SKIP

await t.test(
  'kill -9 of a replica that holds a resource, with a cache in Redis',
  { skip },
  async (t) => {
    const redis = await startRedisServer(() => ['--requirepass', 'secret'])
    t.teardown(() => redis.kill())
    const env = { TRITONCACHE_REDIS_PASSWORD: 'secret' }
    // On a busy machine a lookup may take long; here each one counts.
    const cache = ['host=127.0.0.1', `port=${redis.port}`, 'wait_timeout=20000'].map(
      (setting) => `--cache-config=redis,${setting}`,
    )
    const limiter = ['--rate-limit=execution_count', '--rate-limit-resource=r:1']
    const append = { big_identity: `${CACHE} ${LIMIT}`, ens_chain: CACHE, slow: LIMIT }
    const models = [...Object.keys(append), 'add_one_batch']
    const repositories = [await copyModels(t, models, { append })]
    const harness = await startHarness(t)
    const startStep = () => harness.step({ repositories, env, flags: [...cache, ...limiter] })
    const startRouter = () => harness.router({ repositories, env, flags: cache })
    const [router, ...steps] = await Promise.all([startRouter(), startStep(), startStep()])
    await untilReady([router], models)
    const client = openClient(t, router)
    const all = [...IDENTITIES, ...CHAINS, ...SEEDS.map((seed) => slowQuestion(10 + seed))]
    const question = (i: number) => all[i % all.length] ?? slowQuestion(1)
    const begin = () => startLoad(t, { targets: [router], clients: 8, question })
    const first = begin()
    await first.more(all.length)
    t.same(unclean(await first.stop()), [])
    await Promise.all(steps.map(({ id }) => harness.watch.idle(id)))
    const endless = ask(client, slowQuestion(ENDLESS))
    const holder = await until('one holds the resource', () =>
      steps.find(({ id }) => harness.watch.latest(id)?.inFlight === 1),
    )
    const [survivor = holder] = steps.filter((one) => one !== holder)

    await t.test(
      'each request is answered rightly or told so, and the other goes on',
      async (t) => {
        const load = begin()
        await load.more(5)
        const killed = mark(router.process)
        holder.process.kill('SIGKILL')
        await logged(router.process, killed, 'member is gone', { member: holder.id })
        const after = load.asked
        await load.more(2 * all.length)
        const outcomes = await load.stop()
        t.match(await endless, { code: 'UNAVAILABLE', reason: 'STEP_LOST' })
        t.same(unclean(outcomes), [], 'right, or an error that says what happened')
        const later = outcomes.slice(after).filter(({ kind }) => kind !== 'right')
        t.same(later.map(describe), [], 'the limiter of the other holds nothing for the dead one')
      },
    )

    await t.test('the cache has what the dead one executed, and statistics count it', async (t) => {
      const before = await cacheCounts(t, survivor, 'big_identity')
      for (const one of IDENTITIES) t.same(await ask(client, one), { kind: 'right' })
      const { hits, misses, successes, executions } = await cacheCounts(t, survivor, 'big_identity')
      t.equal(hits, before.hits + IDENTITIES.length)
      t.equal(executions, before.executions)
      t.equal(successes, hits + misses)
    })

    await t.test('a router that takes the place of a dead one answers from it', async (t) => {
      router.process.kill('SIGKILL')
      const other = await startRouter()
      await untilReady([other], ['ens_chain'])
      for (const one of CHAINS) t.same(await ask(openClient(t, other), one), { kind: 'right' })
      const counts = await cacheCounts(t, other, 'ens_chain')
      t.match(counts, { hits: CHAINS.length, misses: 0, executions: 0 })
    })
  },
)

async function cacheCounts(t: Test, target: Target, model: string) {
  const one = await statisticsOf(openClient(t, target), model)
  const { cache_hit: hit, cache_miss: miss, success } = one.inference_stats ?? {}
  const [hits = 0, misses = 0, successes = 0] = [hit, miss, success].map((o) => Number(o?.count))
  return { hits, misses, successes, executions: Number(one.execution_count) }
}
