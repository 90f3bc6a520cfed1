// needs: apiserver
import { withoutKube } from '@tutti/kube/testing'
import t from 'tap'
import { judgeOnServer } from '../testing/verdicts/judge-on-server.ts'
import { randomNamespace } from '../testing/verdicts/random-namespace.ts'
import { runValidate } from '../testing/verdicts/run-validate.ts'

const ON_SERVER = 12
/** Each run looks at others; a failure names the seed of its namespace. */
const firstSeed = Math.floor(Math.random() * 2 ** 31)

await t.test('an operator of a real API server says it too', { skip: withoutKube() }, async (t) => {
  const seeds = Array.from({ length: ON_SERVER }, (_, i) => firstSeed + i)
  const sets = seeds.map((seed) => ({ seed, ...randomNamespace(seed, { hasRepository: false }) }))
  const validated = await runValidate(
    `${t.testdir()}/manifests`,
    sets.map(({ manifests }) => manifests),
  )
  const judged = sets.map((set, i) => ({ ...set, wanted: validated[i] ?? new Map() }))
  await judgeOnServer(t, judged)
})
