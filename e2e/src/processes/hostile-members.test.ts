// needs: nats

import { testFactor, testSeed, until } from '@tutti/chassis/testing'
import t from 'tap'
import { residentBytes } from '../control-churn.ts'
import { openClient } from '../grpc-client.ts'
import { seededRandom } from '../hostile.ts'
import { ask, describe, type Outcome } from './asking.ts'
import { type Member, SKIP, startHarness } from './harness.ts'
import { HONEST_MODELS, HostileMember } from './hostile-member.ts'
import { startLoad } from './load.ts'
import { chainQuestion, identityQuestion, type Question, slowQuestion } from './questions.ts'
import { howItEnded, successes } from './seen.ts'

t.setTimeout(600_000)

const SEED = testSeed()
/** Messages of one attack; a flood has four times as many. */
const COUNT = 800 * testFactor()
/** Lines that one process may log in one attack of thousands of messages. */
const LINES = 1500
/** Above what a process has when it has served: the heap's own slack, far below what was sent. */
const GROWTH_BYTES = 512 * 1024 * 1024

const QUESTIONS: readonly ((seed: number) => Question)[] = [
  chainQuestion,
  (seed) => identityQuestion(300_000, seed),
  () => slowQuestion(3, 'ens_slow'),
  chainQuestion,
  (seed) => identityQuestion(2_500_000, seed),
]

function mixed(i: number): Question {
  return (QUESTIONS[i % QUESTIONS.length] ?? chainQuestion)(i)
}

/** Tells whether a client may be told this while somebody lies about everybody: nothing wrong, nothing late, nothing without a reason. */
function isTyped(outcome: Outcome): boolean {
  if (outcome.kind !== 'error') return outcome.kind === 'right'
  return !['INTERNAL', 'DEADLINE_EXCEEDED', 'SERVER_NOT_READY'].includes(outcome.reason)
}

const ATTACKS: readonly (readonly [string, (hostile: HostileMember) => Promise<void>])[] = [
  ['noise on every subject', (hostile) => hostile.sendNoise(COUNT)],
  ['damaged messages', (hostile) => hostile.sendDamaged(COUNT)],
  ['replays', (hostile) => hostile.replay(COUNT)],
  ['contradicting heartbeats', (hostile) => hostile.contradict(COUNT)],
  ['invented replicas', (hostile) => hostile.invent(COUNT)],
  ['forged words of the broker', (hostile) => hostile.denyMembers(COUNT)],
  ['floods', (hostile) => hostile.flood(4 * COUNT)],
]

await t.test('a hostile member with valid credentials', { skip: SKIP }, async (t) => {
  t.comment(`TUTTI_SEED=${SEED}`)
  const harness = await startHarness(t)
  const models = [...HONEST_MODELS]
  const [router, ...steps] = await Promise.all([
    harness.router(),
    harness.step({ models }),
    harness.step({ models }),
  ])
  const members: readonly Member[] = [router, ...steps]
  const client = openClient(t, router)
  const toSteps = steps.map((step) => openClient(t, step))
  const executed = (): Promise<readonly number[]> =>
    Promise.all(toSteps.map((step) => successes(step, 'add_one_batch')))
  /** True if so many are answered, and every replica has its part in it. */
  const serves = async (): Promise<boolean> => {
    const before = await executed()
    const outcomes = await Promise.all(Array.from({ length: 30 }, (_, i) => ask(client, mixed(i))))
    const after = await executed()
    const isShared = after.every((count, i) => count > (before[i] ?? 0))
    return isShared && outcomes.every(({ kind }) => kind === 'right')
  }
  await until('all is served', serves)
  const hostile = await HostileMember.join(t, {
    url: harness.broker.url,
    watch: harness.watch,
    honest: members.map(({ id }) => id),
    random: seededRandom(SEED),
  })
  const before = await Promise.all(members.map(residentBytes))

  for (const [what, attack] of ATTACKS) {
    await t.test(what, async (t) => {
      const load = startLoad(t, { targets: [router], clients: 6, question: mixed })
      const lines = members.map(({ process }) => process.lines.length)
      await load.more(20)
      await attack(hostile)
      const outcomes = await load.stop()
      const strange = [...new Set(outcomes.filter((one) => !isTyped(one)).map(describe))]
      t.same(strange, [], `${outcomes.length} requests had the right answer or a reason`)
      await until('all is served again', serves)
      for (const [i, { id, process }] of members.entries()) {
        const logged = process.lines.slice(lines[i])
        t.ok(logged.length < LINES, `${id} logged ${logged.length} lines: ${logged.at(-1)}`)
      }
    })
  }

  await t.test('leaves nothing behind', async (t) => {
    // Steps remember for a minute what they were told of calls that were still to come.
    let failed: readonly string[] = []
    const isWell = async (): Promise<boolean> => {
      const outcomes: Outcome[] = []
      for (let i = 0; i < 60; i += 1) outcomes.push(await ask(client, mixed(i)))
      failed = outcomes.filter(({ kind }) => kind !== 'right').map(describe)
      return failed.length === 0
    }
    await until(() => `60 requests in turn are answered: ${failed.join('; ')}`, isWell)
    for (const { id } of members) await harness.watch.idle(id)
    for (const [i, member] of members.entries()) {
      const { id, process } = member
      const grown = (await residentBytes(member)) - (before[i] ?? 0)
      t.ok(grown < GROWTH_BYTES, `${id} grew by ${Math.round(grown / 2 ** 20)} MiB`)
      const errors = process.lines.filter((line) => line.includes('"level":"error"'))
      t.same(errors, [], `${id} met no fault of its own`)
      const ended = await process.stop('SIGTERM', 60_000)
      t.equal(howItEnded(process, ended), '', `${id} ends in order`)
    }
  })
})
