// needs: nats, python
import t, { type Test } from 'tap'
import { SKIP, startHarness } from '../processes/harness.ts'
import { untilReady } from '../processes/seen.ts'
import { PYTHON_FLAGS } from '../triton-client.ts'
import { differencesFrom, readCorpus, readKnown } from './corpus.ts'
import { DECOUPLED, MODELS } from './generate/models.ts'
import { openServer, type ParityServer } from './parity-server.ts'
import { type Finding, listByKind } from './report.ts'
import { copyFixtures } from './servers.ts'

t.setTimeout(300_000)

/** Each so many-th case of those that need no control of models. */
const SHARE = 5

await t.test('what Triton answered, over a router and a step', { skip: SKIP }, async (t) => {
  const known = new Set(Object.values(readKnown()).flat())
  const cases = readCorpus()
    .filter(({ test }) => /^(infer|stream|rest|raw)-/.test(test.id) && !known.has(test.id))
    .filter((_recorded, i) => i % SHARE === 0)
  t.ok(cases.length > 0, `${cases.length} cases`)
  const server = await startNatsServers(t)
  const findings: Finding[] = []
  for (const recorded of cases) {
    const { test } = recorded
    const differences = differencesFrom(recorded, await server.run(test))
    if (differences.length > 0) findings.push({ test, differences })
  }
  t.equal(listByKind(findings), '', 'as in one process')
})

/** A router and a step over NATS, which serve the same. */
async function startNatsServers(t: Test): Promise<ParityServer> {
  const repository = await copyFixtures(t)
  const harness = await startHarness(t)
  const repositories = [repository]
  const [router] = await Promise.all([
    harness.router({ repositories }),
    harness.step({ repositories, flags: PYTHON_FLAGS }),
  ])
  await untilReady(
    [router],
    [...MODELS, ...DECOUPLED].map(({ name }) => name),
  )
  const server = openServer({ target: router, repository })
  t.teardown(() => server.close())
  return server
}
