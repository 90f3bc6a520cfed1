import t from 'tap'
import { openClient } from './asking.ts'
import { SKIP, startHarness } from './harness.ts'
import { startLoad } from './load.ts'
import { slowQuestion } from './questions.ts'
import { successes, untilReady } from './seen.ts'

t.setTimeout(300_000)

await t.test('two routers share two replicas', { skip: SKIP }, async (t) => {
  const harness = await startHarness(t)
  const step = () => harness.step({ models: ['slow'] })
  const [one, other, left, right] = await Promise.all([
    harness.router(),
    harness.router(),
    step(),
    step(),
  ])
  const routers = [one, other]
  await untilReady(routers, ['ens_slow'])
  const [toLeft, toRight] = [openClient(t, left), openClient(t, right)]
  const counts = async () =>
    [await successes(toLeft, 'slow'), await successes(toRight, 'slow')] as const

  await t.test('evenly, if the replicas are equal', async (t) => {
    const load = startLoad(t, { targets: routers, clients: 8, question: () => slowQuestion(20) })
    await load.more(200)
    t.same(
      (await load.stop()).filter(({ kind }) => kind !== 'right'),
      [],
    )
    const [atLeft, atRight] = await counts()
    t.equal(atLeft + atRight, load.right, 'every request ran once')
    t.ok(
      Math.min(atLeft, atRight) * 2 >= Math.max(atLeft, atRight),
      `${atLeft} and ${atRight} requests`,
    )
  })

  await t.test('a replica that is slower gets less', async (t) => {
    const [leftBefore, rightBefore] = await counts()
    const own = startLoad(t, { targets: [left], clients: 6, question: () => slowQuestion(100) })
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
})
