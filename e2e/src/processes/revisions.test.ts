// needs: nats

import { testFactor, testSeed, until } from '@tutti/chassis/testing'
import t, { type Test } from 'tap'
import { openClient } from '../grpc-client.ts'
import { seededRandom } from '../hostile.ts'
import { type Member, SKIP, startHarness } from './harness.ts'
import { between, oneOf } from './history-requests.ts'
import {
  askShift,
  REVISIONS,
  type Revision,
  SHIFTS,
  type Shifted,
  shiftEnsembles,
  shiftRepository,
} from './revisions-models.ts'
import { logged, mark, untilReady } from './seen.ts'

t.setTimeout(600_000)

const SEED = testSeed()
/** The majority goes to the other revision, and back. */
const ROUNDS = testFactor() > 1 ? 6 : 2
/** Errors that a rollout may cost a request. */
const TYPED = new Set(
  ['STEP_LOST', 'STEP_UNAVAILABLE', 'REVISION_GONE'].map((r) => `UNAVAILABLE ${r}`),
)

/** A router of the ensembles, and a way to start replicas of `shift` in a revision. */
async function openScene(t: Test) {
  const harness = await startHarness(t)
  const router = await harness.router({ repositories: [await shiftEnsembles(t)] })
  const folders = new Map<Revision, string>()
  for (const revision of ['one', 'three', 'odd'] as const) {
    folders.set(revision, await shiftRepository(t, revision))
  }
  const start = (revision: Revision): Promise<Member> =>
    harness.step({ repositories: [folders.get(revision) ?? ''], models: ['shift'] })
  return { harness, router, start }
}

/** Waits until the router has taken the replica away. */
async function leaves(
  router: Member,
  replica: Member,
  signal: 'SIGTERM' | 'SIGKILL',
): Promise<void> {
  const from = mark(router.process)
  await replica.process.stop(signal, 60_000)
  await logged(router.process, from, 'step gone', { replica: replica.id })
}

await t.test('two revisions under one version number', { skip: SKIP }, async (t) => {
  t.comment(`TUTTI_SEED=${SEED}`)
  const random = seededRandom(SEED)
  const { router, start } = await openScene(t)
  const replicas: { readonly revision: Revision; readonly member: Member }[] = []
  const add = async (revision: Revision): Promise<void> => {
    replicas.push({ revision, member: await start(revision) })
  }
  await Promise.all([add('one'), add('three')])
  await untilReady([router], ['ens_shift', 'shift'])

  const ends = new Map<Shifted, number>()
  const state = { isStopped: false, asked: 0 }
  const clients = Array.from({ length: 8 }, async () => {
    const client = openClient(t, router)
    while (!state.isStopped) {
      const seed = state.asked++
      // One in four goes to the model itself, whose one shift counts as if it were all of them.
      const isPlain = seed % 4 === 0
      const shifted = await askShift(client, isPlain ? 'shift' : 'ens_shift', { seed })
      const end = isPlain && typeof shifted === 'number' ? shifted * SHIFTS : shifted
      ends.set(end, (ends.get(end) ?? 0) + 1)
    }
  })
  const counted = (revision: Revision): number => ends.get(REVISIONS[revision] * SHIFTS) ?? 0
  const more = async (revision: Revision): Promise<void> => {
    const wanted = counted(revision) + 30
    await until(`revision ${revision} answers`, () => counted(revision) >= wanted)
  }

  await t.test('replicas of each come and go under load', async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      // The majority has the traffic: so it goes over to this revision, and back in the next round.
      const revision = round % 2 === 0 ? 'three' : 'one'
      const others = replicas.filter((one) => one.revision !== revision)
      while (replicas.length <= 2 * others.length) await add(revision)
      await more(revision)
      // One of this revision stays, and one of the other or none.
      const own = replicas.filter((one) => one.revision === revision)
      const leaving = [...others.slice(between(random, 0, others.length - 1)), ...own.slice(1)]
      for (const one of leaving) {
        replicas.splice(replicas.indexOf(one), 1)
        await leaves(router, one.member, oneOf(random, ['SIGTERM', 'SIGKILL']))
      }
      await more(revision)
    }
  })

  await t.test('no request mixed them', async (t) => {
    state.isStopped = true
    await Promise.all(clients)
    t.comment([...ends].map(([end, count]) => `${count} x ${end}`).join(', '))
    const right = new Set<Shifted>([REVISIONS.one * SHIFTS, REVISIONS.three * SHIFTS])
    const strange = [...ends.keys()].filter((end) => !right.has(end) && !TYPED.has(String(end)))
    t.same(strange, [])
  })
})

await t.test('a pinned revision that goes', { skip: SKIP }, async (t) => {
  const { harness, router, start } = await openScene(t)
  const holder = await harness.step({ models: ['slow'] })
  const client = openClient(t, router)

  /** Asks, lets `before` go while `slow` holds the request and only `after` stays, and says how it ended. */
  const askWhile = async (ensemble: string, before: Revision, after: Revision) => {
    // How long `slow` takes depends on the machine, so try until it was long enough.
    for (let rounds = 8000; ; rounds *= 2) {
      const stays = await start(after)
      // Where each revision has as many replicas, the one that came last is pinned.
      const goes = await start(before)
      await until(
        `revision ${before} has the traffic`,
        async () => (await askShift(client, 'shift', { seed: 1 })) === REVISIONS[before],
      )
      await untilReady([router], [ensemble])
      const isHeld = harness.watch.next(holder.id, 'holds it', (h) => h.inFlight > 0)
      const state = { hasEnded: false }
      const asked = askShift(client, ensemble, { seed: 7, rounds }).finally(() => {
        state.hasEnded = true
      })
      await isHeld
      await leaves(router, goes, 'SIGTERM')
      const isInTime = !state.hasEnded
      const end = await asked
      await leaves(router, stays, 'SIGTERM')
      if (isInTime) return end
    }
  }

  await t.test(
    'before it was used: the request moves to one with the same signature',
    async (t) => {
      t.equal(await askWhile('ens_shift_late', 'one', 'three'), 2 * REVISIONS.three)
    },
  )

  await t.test('before it was used: not to one with another signature', async (t) => {
    t.equal(await askWhile('ens_shift_late', 'one', 'odd'), 'UNAVAILABLE REVISION_GONE')
  })

  await t.test('after it was used: the request does not move', async (t) => {
    t.equal(await askWhile('ens_shift_around', 'one', 'three'), 'UNAVAILABLE REVISION_GONE')
  })

  await t.test('and nothing is left in flight', async (t) => {
    await harness.watch.idle(router.id)
    await harness.watch.idle(holder.id)
    t.pass()
  })
})
