import { readFile } from 'node:fs/promises'
import t from 'tap'
import { adderFrom, chain, INPUT, makeAdders, SPACE, sumOf } from './adders.ts'
import { createClaim } from './claim.ts'
import { killAndRestart } from './container-processes.ts'
import { createEdge, exposeByIngress } from './edge.ts'
import { apply, createNamespace, kubectl, withoutTuttiImages } from './kubectl.ts'
import { countEach, Load, showUnderLoad } from './load.ts'
import { install, removeAfter } from './release.ts'
import { mainOf, openWorkloads } from './workloads.ts'

t.setTimeout(1_800_000)

const HOST = 'sum.test'
const MODELS = ['first', 'second'] as const
const TOGETHER = 'tutti.dev/ensemble=sum,app.kubernetes.io/component=step'
const own = (model: string): string => `tutti.dev/model=${model}`
/** An error that says: it was not done, try again. 502 is the ingress controller's, whose server has gone. */
const RETRIABLE = /^(gRPC UNAVAILABLE|REST (502|503)): /

await t.test('Models in the same pods', { skip: withoutTuttiImages() }, async (t) => {
  const steps = openWorkloads(SPACE)
  const folder = await makeAdders(t)
  const edge = await createEdge(t, [HOST])
  removeAfter(t)
  await createNamespace(t, SPACE)
  await createClaim(t, SPACE, folder)
  await edge.createSecret(SPACE)
  await install()
  const files = { storageUri: 'pvc://models/plus-one', scaling: {} }
  await apply(
    ...MODELS.map((name) => adderFrom(name, files)),
    exposeByIngress(chain('sum', MODELS), HOST),
  )
  const ready = ['--for=condition=Ready', '--timeout=300s', '--all', `--namespace=${SPACE}`]
  await kubectl('wait', 'models,ensembles', ...ready)
  const ca = await readFile(edge.caFile)
  const question = { ca, host: HOST, model: 'sum', inputs: [INPUT], outputs: ['y'] }
  const load = new Load(t, question, { grpc: 2, rest: 1, answer: sumOf(2), thinkMs: 50 })
  await load.begin()
  const show = showUnderLoad(t, load)

  await show('an Ensemble takes the Models of its steps together', async (t) => {
    await steps.change('ensemble', 'sum', {
      placement: 'Together',
      scaling: { minReplicas: 2, maxReplicas: 2 },
    })
    await steps.settled(TOGETHER, 2)
    for (const model of MODELS) await steps.settled(own(model), 0)
    for (const pod of await steps.pods(TOGETHER)) {
      const args: readonly string[] = mainOf(pod)['args']
      const served = args.filter((_, i) => args[i - 1] === '--model-directory')
      t.same(served, ['first=/models/first', 'second=/models/second'])
    }
    await kubectl('wait', 'models,ensembles', ...ready)
  })

  await show('one of them moves out, and back', async () => {
    await steps.change('model', 'first', { placement: 'Alone' })
    await steps.settled(own('first'), 1)
    await steps.settled(TOGETHER, 2, ({ metadata }) => !hasFirst(metadata.labels))
    await steps.change('model', 'first', { placement: null })
    await steps.settled(TOGETHER, 2, ({ metadata }) => hasFirst(metadata.labels))
    await steps.settled(own('first'), 0)
  })

  await show('other files of one of them', async () => {
    load.accept(sumOf(2), sumOf(4))
    await steps.change('model', 'second', { storageUri: 'pvc://models/plus-three' })
    await load.settleOn(sumOf(4))
    await steps.settled(TOGETHER, 2)
  })

  await t.test('a pod of them is killed', async (t) => {
    const [pod] = await steps.pods(TOGETHER)
    if (pod === undefined) throw new Error('there is no pod of the Ensemble')
    const counts = [...countEach(await load.during(() => killAndRestart(pod)))]
    t.same(
      counts.filter(([problem]) => !RETRIABLE.test(problem)),
      [],
    )
    for (const [problem, times] of counts) t.comment(`${times} x ${problem}`)
  })

  await show('one Model with another, and all apart again', async () => {
    await steps.change('ensemble', 'sum', { placement: null, scaling: null })
    for (const model of MODELS) await steps.settled(own(model), 1)
    await steps.settled(TOGETHER, 0)
    await steps.change('model', 'second', { runsWith: 'first' })
    await steps.settled(own('second'), 0)
    await steps.settled('model.tutti.dev/second', 1)
    await steps.change('model', 'second', { runsWith: null })
    await steps.settled(own('second'), 1)
    await steps.settled(own('first'), 1)
  })

  await load.stop()
})

function hasFirst(labels: Readonly<Record<string, string>>): boolean {
  return labels['model.tutti.dev/first'] !== undefined
}
