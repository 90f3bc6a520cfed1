import { readFile } from 'node:fs/promises'
import type { PlainObject } from '@tutti/kube/testing'
import t from 'tap'
import { VERSION } from '../serving.ts'
import { fp32, int64 } from '../tensors.ts'
import { adder, chain, INPUT, makeAdders, SPACE, slowEnsemble, slowModel, sumOf } from './adders.ts'
import { createClaim } from './claim.ts'
import { killAndRestart } from './container-processes.ts'
import { createEdge, exposeByIngress } from './edge.ts'
import { apply, createNamespace, getObject, kubectl, withoutTuttiImages } from './kubectl.ts'
import { countEach, Load, showUnderLoad } from './load.ts'
import { install, removeAfter, rollBack, SYSTEM } from './release.ts'
import { isEnding, mainOf, openWorkloads, rolledOut } from './workloads.ts'

t.setTimeout(3_000_000)

const HOSTS = { sum: 'sum.test', slow: 'slow.test' } as const
const STEPS = { first: 'tutti.dev/model=first', second: 'tutti.dev/model=second' } as const
const ROUTERS = 'app.kubernetes.io/component=router'
const imagesOf = (tag: string): readonly string[] =>
  ['operator', 'router', 'step'].map((name) => `--set=${name}.image.tag=${tag}`)
/** An error that says: it was not done, try again. 502 is the ingress controller's, whose server has gone. */
const RETRIABLE = /^(gRPC UNAVAILABLE|REST (502|503)): /
/** Traefik's, for a request whose connection to its server was reset in the midst of it; of an end it makes 502. */
const RESET = /^(gRPC UNKNOWN: Received HTTP status code 500|REST 500: Internal Server Error)$/
const ROUNDS = 500
/** Some request is always under way, and the processor is there for what rolls out. */
const THINK_MS = 50

const imageIs = (tag: string) => (pod: PlainObject) => mainOf(pod)['image'].endsWith(`:${tag}`)

/** An HPA at the Model `first`. */
const autoscaler = (minReplicas: number, maxReplicas: number) => ({
  apiVersion: 'autoscaling/v2',
  kind: 'HorizontalPodAutoscaler',
  metadata: { namespace: SPACE, name: 'first' },
  spec: {
    scaleTargetRef: { apiVersion: 'tutti.dev/v1alpha1', kind: 'Model', name: 'first' },
    minReplicas,
    maxReplicas,
  },
})

await t.test('requests go on', { skip: withoutTuttiImages() }, async (t) => {
  const steps = openWorkloads(SPACE)
  const folder = await makeAdders(t)
  const edge = await createEdge(t, Object.values(HOSTS))
  removeAfter(t)
  await createNamespace(t, SPACE)
  await createClaim(t, SPACE, folder)
  await edge.createSecret(SPACE)
  await install()
  await apply(
    adder('first', 'plus-one'),
    adder('second', 'plus-one'),
    exposeByIngress(chain('sum', ['first', 'second']), HOSTS.sum),
  )
  const ready = ['--for=condition=Ready', '--timeout=300s', '--all', `--namespace=${SPACE}`]
  await kubectl('wait', 'models,ensembles', ...ready)
  const ca = await readFile(edge.caFile)
  const question = { ca, host: HOSTS.sum, model: 'sum', inputs: [INPUT], outputs: ['y'] }
  const load = new Load(t, question, {
    grpc: 3,
    rest: 1,
    answer: sumOf(2),
    thinkMs: THINK_MS,
  })
  await load.begin()

  const show = showUnderLoad(t, load)

  /** Answers are the old or the new ones for a while, then the new ones. */
  const showChange = (
    name: string,
    [from, to]: readonly [number, number],
    work: () => Promise<unknown>,
  ): Promise<unknown> =>
    show(name, async () => {
      load.accept(sumOf(from), sumOf(to))
      await work()
      await load.settleOn(sumOf(to))
    })

  const allHave = async (tag: string): Promise<void> => {
    await rolledOut(SPACE, 'tutti-router')
    for (const selector of [ROUTERS, ...Object.values(STEPS)]) {
      await steps.settled(selector, 2, imageIs(tag))
    }
  }

  const next = [...imagesOf('next'), '--set=nats.accounts.connections=120']

  await show('helm upgrade with other images for all, and another value', async () => {
    await install(next)
    await allHave('next')
  })

  await show('helm rollback to the images before', async () => {
    await rollBack(1)
    await allHave(VERSION)
  })

  await show('helm upgrade after the rollback', async () => {
    await install(next)
    await allHave('next')
  })

  await show('another image and other resources of a Model', async () => {
    const containers = [{ name: 'main', image: `tutti/step:${VERSION}` }]
    const resources = { requests: { memory: '96Mi' } }
    await steps.change('model', 'first', { podTemplate: { spec: { containers } }, resources })
    await steps.settled(
      STEPS.first,
      2,
      (pod) => imageIs(VERSION)(pod) && mainOf(pod)['resources'].requests?.memory === '96Mi',
    )
  })

  await showChange('other files of a Model', [2, 4], () =>
    steps.change('model', 'second', { storageUri: 'pvc://models/plus-three' }),
  )

  await showChange('another graph of the Ensemble', [4, 7], () =>
    steps.change('ensemble', 'sum', chain('sum', ['first', 'second', 'second'])['spec']),
  )

  await show('1, 3 and 1 pods, as the Model says', async () => {
    for (const replicas of [1, 3, 1]) {
      await steps.change('model', 'first', {
        scaling: { minReplicas: replicas, maxReplicas: replicas },
      })
      await steps.settled(STEPS.first, replicas)
    }
  })

  await show('1, 3 and 1 pods, by hand, and by an HPA at the Model', async () => {
    const scaling = { provider: 'None', minReplicas: null, maxReplicas: null }
    await steps.change('model', 'first', { scaling })
    for (const replicas of [3, 1]) {
      const scale = ['model/first', `--replicas=${replicas}`, `--namespace=${SPACE}`]
      await kubectl('scale', ...scale)
      await steps.settled(STEPS.first, replicas)
    }
    // Outside of its bounds it needs no metrics.
    for (const replicas of [3, 1]) {
      await apply(autoscaler(replicas, replicas))
      await steps.settled(STEPS.first, replicas)
    }
    await kubectl('delete', 'hpa', 'first', `--namespace=${SPACE}`)
    const two = { provider: 'Native', replicas: null, minReplicas: 2, maxReplicas: 2 }
    await steps.change('model', 'first', { scaling: two })
    await steps.settled(STEPS.first, 2)
  })

  await show('1, 3 and 1 pods, as the load wants it', async (t) => {
    const behavior = { scaleDown: { stabilizationWindowSeconds: 1 } }
    const scaling = { minReplicas: 1, maxReplicas: 3, target: 1, behavior }
    await apply(
      slowModel('slow', { scaling }),
      exposeByIngress(slowEnsemble('long', 'slow'), HOSTS.slow),
    )
    await kubectl('wait', 'models,ensembles', ...ready)
    const inputs = [fp32('x', [1]), int64('rounds', [ROUNDS])]
    const asking = { ca, host: HOSTS.slow, model: 'long', inputs, outputs: ['y'] }
    // The fixture answers 1, whatever the rounds.
    const answer = fp32('y', [1]).data
    const one = new Load(t, asking, { grpc: 1, rest: 0, answer })
    await one.begin()
    const many = new Load(t, asking, { grpc: 8, rest: 0, answer })
    const selector = 'tutti.dev/model=slow'
    t.same(await many.during(() => steps.settled(selector, 3)), [])
    await many.stop()
    t.same(await one.during(() => steps.settled(selector, 1)), [])
    await one.stop()
    await kubectl('delete', 'ensemble/long', 'model/slow', `--namespace=${SPACE}`)
  })

  /** Evicts a pod of `first`; the function that comes back knows the others. */
  const evictOne = async (): Promise<(pod: PlainObject) => boolean> => {
    const [pod] = await steps.pods(STEPS.first)
    if (pod === undefined) throw new Error('there is no pod of first')
    await steps.evict(pod)
    return ({ metadata }) => metadata.uid !== pod['metadata'].uid
  }

  await show('a step is evicted', async () => {
    await steps.settled(STEPS.first, 2, await evictOne())
  })

  await show('the operator is restarted', async () => {
    await kubectl('rollout', 'restart', 'deployment/tutti-operator', `--namespace=${SYSTEM}`)
    await rolledOut(SYSTEM, 'tutti-operator')
  })

  await show('a step is evicted while there is no operator', async () => {
    const operator = ['deployment/tutti-operator', `--namespace=${SYSTEM}`]
    const pods = [
      'pods',
      '--selector=app.kubernetes.io/component=operator',
      `--namespace=${SYSTEM}`,
    ]
    await kubectl('scale', ...operator, '--replicas=0')
    await kubectl('wait', '--for=delete', '--timeout=300s', ...pods)
    const isOther = await evictOne()
    await steps.until('another one runs', STEPS.first, (pods) => {
      const others = pods.filter((pod) => !isEnding(pod) && isOther(pod))
      return others.length === 2 && others.every(({ status }) => status.phase === 'Running')
    })
    await kubectl('scale', ...operator, '--replicas=2')
    await rolledOut(SYSTEM, 'tutti-operator')
    await steps.settled(STEPS.first, 2, isOther)
  })

  await show('each router ends in turn', async () => {
    for (const { metadata } of await steps.pods(ROUTERS)) {
      await kubectl('delete', 'pod', metadata.name, `--namespace=${SPACE}`)
      await steps.settled(ROUTERS, 2, (pod) => pod['metadata'].uid !== metadata.uid)
    }
  })

  /** Requests may fail, but at once, and such that they can be asked again. */
  const showFault = (
    name: string,
    work: () => Promise<unknown>,
    isAllowed = (problem: string) => RETRIABLE.test(problem),
  ): Promise<unknown> =>
    t.test(name, async (t) => {
      const before = load.asked
      const problems = await load.during(work)
      const counts = [...countEach(problems)]
      t.same(
        counts.filter(([problem]) => !isAllowed(problem)),
        [],
      )
      t.comment(`${load.asked - before} requests, of which ${problems.length} failed:`)
      for (const [problem, times] of counts) t.comment(`${times} x ${problem}`)
    })

  const killOne = async (selector: string): Promise<void> => {
    const [pod] = await steps.pods(selector)
    if (pod === undefined) throw new Error(`there is no pod of ${selector}`)
    await killAndRestart(pod)
  }

  await showFault('a step is killed', () => killOne(STEPS.second))

  await showFault(
    'a router is killed',
    () => killOne(ROUTERS),
    (problem) => RETRIABLE.test(problem) || RESET.test(problem),
  )

  await showFault('the only server of NATS is killed', async () => {
    const selector = '--selector=app.kubernetes.io/component=nats'
    const list = await getObject('pods', `--namespace=${SYSTEM}`, selector)
    await killAndRestart(list['items'][0], 'nats')
  })
  await load.stop()
})
