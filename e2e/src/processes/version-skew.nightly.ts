// needs: nats
import t, { type Test } from 'tap'
import { describe, type Outcome } from './asking.ts'
import { buildEarlier, withoutEarlierCommit } from './earlier-checkout.ts'
import { type Member, SKIP, startHarness } from './harness.ts'
import { startLoad } from './load.ts'
import { mixedQuestion } from './questions.ts'
import { howItEnded, logged, mark, untilReady } from './seen.ts'

t.setTimeout(1_200_000)

const MODELS = ['slow', 'add_one_batch', 'big_identity', 'versioned']
const SERVED = ['slow', 'ens_chain', 'ens_slow', 'big_identity', 'ens_versioned']
/** As long as a request may take: how much is done in the usual 30 s is the machine's matter. */
const FLAGS = ['--exit-timeout-secs=80']

await t.test(
  'routers and steps of two builds',
  { skip: SKIP || (await withoutEarlierCommit()) },
  async (t) => {
    const earlier = await buildEarlier()
    const today = {}
    const before = { program: earlier }
    await t.test('an upgrade of the steps, then of the routers', (t) =>
      replaceAll(t, before, today),
    )
    await t.test('the way back', (t) => replaceAll(t, today, before))
  },
)

interface Build {
  readonly program?: string
}

/** Replaces two steps, then the router, while clients call; the new router must serve before the old one goes. */
async function replaceAll(t: Test, from: Build, to: Build): Promise<void> {
  const harness = await startHarness(t)
  const step = (build: Build): Promise<Member> =>
    harness.step({ ...build, models: MODELS, flags: FLAGS })
  const [router, ...steps] = await Promise.all([
    harness.router({ ...from, flags: FLAGS }),
    step(from),
    step(from),
  ])
  await untilReady([router], SERVED)
  const load = startLoad(t, { targets: [router], clients: 6, question: mixedQuestion })
  await load.more(30)
  for (const leaving of steps) {
    await step(to)
    await load.more(30)
    await leave(leaving, router)
    await load.more(30)
  }
  t.same(failuresOf(await load.stop()), [], 'the earlier router with steps of both builds')

  const next = await harness.router({ ...to, flags: FLAGS })
  await untilReady([next], SERVED)
  const both = startLoad(t, { targets: [router, next], clients: 6, question: mixedQuestion })
  const mixed = await step(from)
  await both.more(60)
  await leave(mixed, next)
  await both.more(30)
  t.same(failuresOf(await both.stop()), [], 'routers of both builds with steps of both builds')
  router.process.kill('SIGTERM')
  t.equal(howItEnded(router.process, await router.process.exited), '')
}

async function leave(leaving: Member, router: Member): Promise<void> {
  const from = mark(router.process)
  leaving.process.kill('SIGTERM')
  const ended = howItEnded(leaving.process, await leaving.process.exited)
  if (ended !== '') throw new Error(ended)
  await logged(router.process, from, 'member is gone', { member: leaving.id })
}

function failuresOf(outcomes: readonly Outcome[]): readonly string[] {
  return outcomes.filter(({ kind }) => kind !== 'right').map(describe)
}
