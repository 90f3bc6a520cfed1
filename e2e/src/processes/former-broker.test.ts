// needs: nats
import t from 'tap'
import { describe, type Outcome } from './asking.ts'
import { type Harness, type Member, SKIP, startHarness } from './harness.ts'
import { startLoad } from './load.ts'
import { mixedQuestion } from './questions.ts'
import { howItEnded, logged, mark, untilReady } from './seen.ts'

t.setTimeout(300_000)

const MODELS = ['slow', 'add_one_batch', 'big_identity', 'versioned']
const SERVED = ['slow', 'ens_chain', 'ens_slow', 'big_identity', 'ens_versioned']
/** As long as a request may take: how much is done in the usual 30 s is the machine's matter. */
const FLAGS = ['--exit-timeout-secs=80']

await t.test('an installation moves to another broker under load', { skip: SKIP }, async (t) => {
  const [primary, former] = await Promise.all([startHarness(t), startHarness(t)])
  const both = [...FLAGS, `--nats-former-servers=${former.broker.url}`]
  // A model of its own: routers that have it know all that the step serves, and not just that it is there.
  const step = (at: Harness, own: string, flags = FLAGS): Promise<Member> =>
    at.step({ models: [...MODELS, own], flags })
  const router = async (at: Harness, flags = FLAGS): Promise<Member> => {
    const started = await at.router({ flags })
    await untilReady([started], SERVED)
    return started
  }
  const loadOn = (target: Member) =>
    startLoad(t, { targets: [target], clients: 4, question: mixedQuestion })

  const oldStep = await step(former, 'identity_int8')
  const oldRouter = await router(former)
  const before = loadOn(oldRouter)
  await before.more(20)
  const newRouter = await router(primary, both)
  const mixed = loadOn(newRouter)
  await Promise.all([before.more(20), mixed.more(20)])
  const newStep = await step(primary, 'identity_int16', both)
  await untilReady([oldRouter, newRouter], ['identity_int16'])
  await Promise.all([before.more(20), mixed.more(20)])
  await leave(oldStep, newRouter)
  await Promise.all([before.more(20), mixed.more(20)])
  t.same(failuresOf(await before.stop()), [], 'through the router on the former broker')
  await leave(oldRouter, newRouter)

  const from = mark(newRouter.process)
  await former.broker.kill()
  await logged(newRouter.process, from, 'broker cannot be connected, trying on', {
    broker: 'former',
    connection: 'control',
  })
  await mixed.more(40)
  await step(primary, 'identity_int32')
  await untilReady([newRouter], ['identity_int32'])
  await leave(newStep, newRouter)
  const lastRouter = await router(primary)
  const after = loadOn(lastRouter)
  await Promise.all([after.more(20), mixed.more(20)])
  t.same(failuresOf(await mixed.stop()), [], 'through the router on both brokers')
  await leave(newRouter, lastRouter)
  await after.more(20)
  t.same(failuresOf(await after.stop()), [], 'through the router on the primary broker')
})

/** Stops a member in order; another has heard that it is gone. */
async function leave(leaving: Member, other: Member): Promise<void> {
  const from = mark(other.process)
  leaving.process.kill('SIGTERM')
  const ended = howItEnded(leaving.process, await leaving.process.exited)
  if (ended !== '') throw new Error(ended)
  await logged(other.process, from, 'member is gone', { member: leaving.id })
}

function failuresOf(outcomes: readonly Outcome[]): readonly string[] {
  return outcomes.filter(({ kind }) => kind !== 'right').map(describe)
}
