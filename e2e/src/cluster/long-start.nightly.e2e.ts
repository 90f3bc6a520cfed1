import { until } from '@tutti/chassis/testing'
import type { PlainObject } from '@tutti/kube/testing'
import t from 'tap'
import { createClaim } from './claim.ts'
import { apply, createNamespace, getObject, kubectl, withoutTuttiImages } from './kubectl.ts'
import { openPlugin } from './kubectl-plugin.ts'
import { install, removeAfter } from './release.ts'
import { openRouter, SPACE, sleeper, writeModels } from './sleepers.ts'
import { openWorkloads } from './workloads.ts'

t.setTimeout(1_200_000)

const NAME = 'long'
const PODS = `tutti.dev/model=${NAME}`
const IN_SPACE = `--namespace=${SPACE}`
const MODEL = { adds: 1000, loadS: 45 }
/** Deadline of a request that gives up long before the load ends. */
const SHORT_MS = 5000
const WAITS = 'waits for its load: version 1, initialize of long_0'

await t.test('a start of 45 s', { skip: withoutTuttiImages() }, async (t) => {
  const folder = await writeModels(t, { [NAME]: MODEL })
  removeAfter(t)
  await createNamespace(t, SPACE)
  await createClaim(t, SPACE, folder)
  await install()
  await apply(sleeper(NAME))
  await kubectl('wait', `model/${NAME}`, '--for=condition=Ready', '--timeout=300s', IN_SPACE)
  await openWorkloads(SPACE).settled(PODS, 0)
  const ask = await openRouter(t)
  const kubectlTutti = await openPlugin(t)
  const patient = ask(NAME, 1)

  await t.test('the status says what it waits for', async (t) => {
    const { start, conditions } = await until('the status has the load', async () => {
      const { status } = await getObject('model', NAME, IN_SPACE)
      return /initialize/.test(status.start?.message ?? '') && status
    })
    const message = 'its load: version 1, initialize of long_0'
    t.match(start, { waitsFor: 'Load', message, pod: /^long-step-/ })
    const ready = conditions.find(({ type }: PlainObject) => type === 'Ready')
    t.match(ready, { status: 'True', reason: 'Waking' })
  })

  await t.test('kubectl tutti says it, and for how long', async (t) => {
    const { out } = await kubectlTutti('status', NAME, '-n', SPACE)
    t.match(out, new RegExp(`Starting: it ${WAITS} \\(\\d+ s\\)`))
    t.comment(out)
  })

  await t.test('a request that gives up says it', async (t) => {
    const error = await ask(NAME, 1, SHORT_MS).then(String, String)
    const wanted = `model 'long' is starting: waited \\d+\\.\\d s for its first replica: pod "long-step-\\S+" ${WAITS}`
    t.match(error, new RegExp(`${wanted}$`))
    t.comment(error)
  })

  await t.test('one that waits is answered', async (t) => {
    const { sum, ms } = await patient
    t.equal(sum, 1 + MODEL.adds)
    t.comment(`after ${(ms / 1000).toFixed(1)} s`)
  })
})
