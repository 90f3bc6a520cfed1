import { setTimeout as delay } from 'node:timers/promises'
import type { PlainObject } from '@tutti/kube/testing'
import t from 'tap'
import { createClaim } from './claim.ts'
import { apply, createNamespace, getObject, kubectl, withoutTuttiImages } from './kubectl.ts'
import { install, removeAfter } from './release.ts'
import { openRouter, SPACE, sleeper, TENSOR, writeModels } from './sleepers.ts'
import { isEnding, openWorkloads } from './workloads.ts'

t.setTimeout(7_200_000)

const IN_SPACE = `--namespace=${SPACE}`
/** The Models: the number that each adds, and the seconds for which it loads. */
const MODELS = {
  two: { adds: 1, loadS: 2 },
  three: { adds: 10, loadS: 3 },
  four: { adds: 100, loadS: 4 },
} as const
const NAMES = Object.keys(MODELS)
const SUM = 111
/** Cycles of sleep and wake, half a minute each; TUTTI_ZERO_CYCLES=50 asks for more than a run of all tests has time for. */
const CYCLES = Number(process.env['TUTTI_ZERO_CYCLES'] ?? 1)
/** When requests are sent, from the end of the first pod on until the next ones serve. */
const MOMENTS_MS = Array.from({ length: 40 }, (_, i) => i * 200)
const PODS = 'tutti.dev/model'

const GRAPH: PlainObject = {
  apiVersion: 'tutti.dev/v1alpha1',
  kind: 'Ensemble',
  metadata: { namespace: SPACE, name: 'graph' },
  spec: {
    maxBatchSize: 0,
    inputs: [{ name: 'x', ...TENSOR }],
    outputs: [{ name: 'y', from: 'y', ...TENSOR }],
    steps: NAMES.map((name, i) => ({
      name,
      modelRef: { name },
      inputMap: { x: i === 0 ? 'x' : `between-${i}` },
      outputMap: { y: i === NAMES.length - 1 ? 'y' : `between-${i + 1}` },
    })),
  },
}

const untilAllAsleep = (): Promise<void> =>
  openWorkloads(SPACE).until('no pod is left, as no request comes', PODS, (pods) => {
    return pods.length === 0
  })

/** Times of a pod, in whole seconds of the API server: when it was made, and when it was Ready. */
function timesOf({ metadata, status }: PlainObject): readonly [number, number] {
  const conditions: readonly PlainObject[] = status.conditions ?? []
  const ready = conditions.find((one) => one['type'] === 'Ready' && one['status'] === 'True')
  return [Date.parse(metadata.creationTimestamp), Date.parse(ready?.['lastTransitionTime'])]
}

await t.test('Models that sleep', { skip: withoutTuttiImages() }, async (t) => {
  const folder = await writeModels(t, MODELS)
  removeAfter(t)
  await createNamespace(t, SPACE)
  await createClaim(t, SPACE, folder)
  await install()
  await apply(...NAMES.map(sleeper), GRAPH)
  const ready = ['--for=condition=Ready', '--timeout=300s', '--all', IN_SPACE]
  await kubectl('wait', 'models,ensembles', ...ready)
  await untilAllAsleep()
  const ask = await openRouter(t)

  await t.test('at rest there is no pod, and all are ready', async (t) => {
    await kubectl('wait', 'models,ensembles', ...ready)
    for (const name of NAMES) {
      const { status } = await getObject('model', name, IN_SPACE)
      t.match(status, { podsReady: '0/0', desiredReplicas: 0 }, name)
    }
  })

  await t.test('the loads of a graph overlap', async (t) => {
    const slowest = await ask('four', 1)
    t.equal(slowest.sum, 101)
    await untilAllAsleep()
    const whole = await ask('graph', 1)
    t.equal(whole.sum, SUM + 1)
    const pods = await openWorkloads(SPACE).pods(PODS)
    await openWorkloads(SPACE).settled(PODS, NAMES.length)
    const times = (await openWorkloads(SPACE).pods(PODS)).map(timesOf)
    t.equal(pods.length, NAMES.length)
    const lastMade = Math.max(...times.map(([made]) => made))
    const firstReady = Math.min(...times.map(([, isReady]) => isReady))
    t.ok(lastMade <= firstReady, 'all pods were made before one was ready')
    const ratio = (whole.ms / slowest.ms).toFixed(2)
    const [one, three] = [slowest.ms, whole.ms].map((ms) => (ms / 1000).toFixed(1))
    t.comment(`start and load of the slowest alone ${one} s, of all three ${three} s: ${ratio}`)
  })

  await t.test(`${CYCLES} cycles, with requests at every moment`, async (t) => {
    const wrong: unknown[] = []
    let asked = 0
    const check = async (value: number): Promise<void> => {
      asked += 1
      const got = await ask('graph', value).catch((error: unknown) => ({ sum: String(error) }))
      if (got.sum !== value + SUM) wrong.push({ value, got: got.sum })
    }
    await check(0)
    for (let cycle = 0; cycle < CYCLES; cycle++) {
      await openWorkloads(SPACE).until('the pods end', PODS, (pods) => pods.some(isEnding))
      const requests = MOMENTS_MS.map(async (ms, i) => {
        await delay(ms)
        await check(i)
      })
      await Promise.all(requests)
    }
    t.same(wrong, [], `of ${asked}`)
    await untilAllAsleep()
  })
})
