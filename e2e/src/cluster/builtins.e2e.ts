import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { PlainObject } from '@tutti/kube/testing'
import t, { type Test } from 'tap'
import { restInfer, restOutputs } from '../rest-infer.ts'
import { ROOT, serve } from '../serving.ts'
import { SPACE } from './adders.ts'
import { killAndRestart } from './container-processes.ts'
import { createEdge, exposeByIngress } from './edge.ts'
import { apply, createNamespace, getObject, kubectl, withoutTuttiImages } from './kubectl.ts'
import { Load, showUnderLoad } from './load.ts'
import { install, leftovers, removeAfter } from './release.ts'
import { mainOf, openWorkloads, rolledOut } from './workloads.ts'

t.setTimeout(1_800_000)

const HOST = 'mean.test'
const BUILTINS = 'tutti.dev/builtins=true'
const IN_SPACE = `--namespace=${SPACE}`
const NOT_NEEDED =
  '--for=jsonpath={.status.conditions[?(@.type=="BuiltinsReady")].reason}=NotNeeded'
/** Some request is always under way, and the processor is there for what rolls out. */
const THINK_MS = 50

/** The mean of each channel of a picture: an Ensemble without a Model. */
const ENSEMBLE: PlainObject = {
  apiVersion: 'tutti.dev/v1alpha1',
  kind: 'Ensemble',
  metadata: { namespace: SPACE, name: 'mean' },
  spec: {
    inputs: [{ name: 'picture', datatype: 'UINT8', shape: [-1] }],
    outputs: [{ name: 'mean', from: 'mean.output' }],
    steps: [
      { name: 'decode', builtin: { name: 'imageDecode' }, inputMap: { data: 'picture' } },
      {
        name: 'float',
        builtin: { name: 'cast', datatype: 'FP32' },
        inputMap: { input: 'decode.image' },
      },
      {
        name: 'mean',
        builtin: { name: 'reduce', op: 'mean', axes: [0, 1] },
        inputMap: { input: 'float.output' },
      },
    ],
  },
}

/** Asks the Ensemble in one process. */
async function answerInOneProcess(t: Test, input: Parameters<typeof restInfer>[2][number]) {
  const file = join(t.testdir(), 'mean.json')
  await writeFile(file, JSON.stringify(ENSEMBLE))
  const server = await serve(t, { repositories: [], flags: [`-f=${file}`] })
  const answer = restOutputs(await restInfer(server, 'mean', [input])).get('mean')
  if (answer === undefined) throw new Error('there is no output mean')
  return answer
}

await t.test('built-in steps', { skip: withoutTuttiImages() }, async (t) => {
  const data = await readFile(`${ROOT}docs/images/face-before-after.jpg`)
  const input = { name: 'picture', datatype: 'UINT8', shape: [data.length], data } as const
  const answer = await answerInOneProcess(t, input)
  const pods = openWorkloads(SPACE)
  const edge = await createEdge(t, [HOST])
  removeAfter(t)
  await createNamespace(t, SPACE)
  await edge.createSecret(SPACE)
  await install()
  await apply(exposeByIngress(ENSEMBLE, HOST))
  await kubectl('wait', 'ensembles', '--all', '--for=condition=Ready', '--timeout=300s', IN_SPACE)

  await t.test('one Deployment has them, and the Router owns it', async (t) => {
    const { metadata, spec } = await getObject('deployment', 'tutti-builtins', IN_SPACE)
    t.match(metadata, { ownerReferences: [{ kind: 'Router', name: 'default', controller: true }] })
    t.equal(spec.replicas, 1)
    const { status } = await getObject('ensemble', 'mean', IN_SPACE)
    t.match(status, { stepsReady: '3/3', steps: [{ model: 'builtin:imageDecode', replicas: 1 }] })
  })

  const ca = await readFile(edge.caFile)
  const question = { ca, host: HOST, model: 'mean', inputs: [input], outputs: ['mean'] }
  // Each answer is compared with that of one process.
  const load = new Load(t, question, { grpc: 3, rest: 1, answer, thinkMs: THINK_MS })
  await load.begin()

  const show = showUnderLoad(t, load)

  const setBuiltins = (builtins: PlainObject): Promise<void> => {
    return pods.change('routers.tutti.dev', 'default', { builtins })
  }

  await show('the only pod is replaced', async () => {
    await setBuiltins({ resources: { requests: { memory: '96Mi' } } })
    await pods.settled(BUILTINS, 1, (pod) => mainOf(pod)['resources'].requests?.memory === '96Mi')
    await rolledOut(SPACE, 'tutti-builtins')
  })

  await show('2 pods, as the Router says', async () => {
    await setBuiltins({ scaling: { minReplicas: 2, maxReplicas: 2 } })
    await pods.settled(BUILTINS, 2)
  })

  const anyPod = async (): Promise<PlainObject> => {
    const [pod] = await pods.pods(BUILTINS)
    if (pod === undefined) throw new Error('there is no pod with built-ins')
    return pod
  }

  await show('a pod is evicted', async () => {
    const pod = await anyPod()
    await pods.evict(pod)
    await pods.settled(BUILTINS, 2, ({ metadata }) => metadata.uid !== pod['metadata'].uid)
  })

  await show('each pod is killed in turn', async () => {
    for (const pod of await pods.pods(BUILTINS)) {
      await killAndRestart(pod)
      await pods.settled(BUILTINS, 2)
    }
  })

  await load.stop()

  await t.test('they go with the last Ensemble that needs them', async (t) => {
    await kubectl('delete', 'ensemble', 'mean', IN_SPACE)
    await kubectl('wait', 'routers.tutti.dev/default', IN_SPACE, '--timeout=300s', NOT_NEEDED)
    await pods.until('they are gone', BUILTINS, (left) => left.length === 0)
    t.same(
      (await leftovers()).filter((one) => one.includes('tutti-builtins')),
      [],
    )
  })
})
