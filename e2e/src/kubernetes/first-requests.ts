import { cp, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { PlainObject } from '@tutti/kube/testing'
import { InferenceClient } from '@tutti/protocol'
import type { Test } from 'tap'
import { BASIC } from '../temp-repository.ts'
import { row, toFloats } from '../tensors.ts'
import { until } from '../until.ts'
import { pathOf, type TuttiCluster } from './cluster.ts'

/** Adds one to `X`, and takes the name of whoever serves it: its config.pbtxt has none. */
export const UNNAMED = 'pvc://models/unnamed'

async function addUnnamed(models: string): Promise<void> {
  const folder = join(models, 'unnamed')
  await cp(join(BASIC, 'add_one_batch'), folder, { recursive: true })
  const file = join(folder, 'config.pbtxt')
  await writeFile(file, (await readFile(file, 'utf8')).replace(/^name:.*$/m, ''))
}

/**
 * Makes a namespace with two routers; they stay, for a Model that nobody asks does.
 *
 * @param models - its claim; a model is added there.
 */
export async function openTwoRouters(
  { cluster, namespace }: FirstRequestPlace,
  models: string,
): Promise<void> {
  await addUnnamed(models)
  await cluster.createNamespace(namespace, models)
  await cluster.api.plain.create(`/api/v1/namespaces/${namespace}/configmaps`, {
    metadata: { name: 'router', labels: { 'tutti.dev/router-settings': 'true' } },
    data: { replicas: '2' },
  })
  const steady = modelNamed('steady')
  await cluster.apply(namespace, [steady])
  await cluster.untilReady(namespace, steady)
  await until('both routers are ready', async () => {
    return (await cluster.routersOf(namespace)).length === 2
  })
}

export interface FirstRequestPlace {
  readonly cluster: TuttiCluster
  readonly namespace: string
}

/** Pods that begin at once; each is a process of this machine. */
const AT_ONCE = 5
const API_VERSION = 'tutti.dev/v1alpha1'

/**
 * In such a namespace, makes Models, each with an Ensemble over it that adds one twice, and asks each of both from every router at the moment at which
 * it is Ready. All names are new, and what was asked is deleted.
 *
 * @param count - Models, and as many Ensembles.
 */
export async function showFirstRequests(
  t: Test,
  { cluster, namespace }: FirstRequestPlace,
  count: number,
): Promise<void> {
  const addresses = await cluster.routersOf(namespace)
  const clients = addresses.map((ip) => new InferenceClient({ address: `${ip}:8001` }))
  t.teardown(() => clients.forEach((client) => client.close()))
  t.ok(clients.length > 0)
  const input = row('X')
  const ask = async (modelName: string, added: number): Promise<void> => {
    const wanted = toFloats(input).map((x) => x + added)
    const answers = await Promise.allSettled(
      clients.map((client) => client.infer({ modelName, inputs: [input] })),
    )
    for (const answer of answers) {
      const what = `the first request to ${modelName}`
      if (answer.status === 'rejected') t.fail(`${what}: ${answer.reason}`)
      else t.same(answer.value.outputs.map(toFloats), [wanted], what)
    }
  }
  for (let first = 0; first < count; first += AT_ONCE) {
    const numbers = Array.from({ length: Math.min(AT_ONCE, count - first) }, (_, n) => first + n)
    await Promise.all(
      numbers.map(async (n) => {
        const model = modelNamed(`first-${n}`)
        const ensemble = ensembleOver(`first-ens-${n}`, `first-${n}`)
        await cluster.apply(namespace, [model, ensemble])
        await Promise.all([
          cluster.untilReady(namespace, model).then(() => ask(`first-${n}`, 1)),
          cluster.untilReady(namespace, ensemble).then(() => ask(`first-ens-${n}`, 2)),
        ])
        for (const one of [ensemble, model]) await cluster.api.plain.delete(pathOf(namespace, one))
      }),
    )
  }
}

function modelNamed(name: string): PlainObject {
  return {
    apiVersion: API_VERSION,
    kind: 'Model',
    metadata: { name },
    spec: { modelFormat: { name: 'onnx' }, storageUri: UNNAMED },
  }
}

function ensembleOver(name: string, model: string): PlainObject {
  const tensor = { datatype: 'FP32', shape: [16] }
  return {
    apiVersion: API_VERSION,
    kind: 'Ensemble',
    metadata: { name },
    spec: {
      maxBatchSize: 8,
      inputs: [{ name: 'X', ...tensor }],
      outputs: [{ name: 'Y', from: 'again.Y' }],
      steps: [
        { name: 'once', modelRef: { name: model }, inputMap: { X: 'X' } },
        { name: 'again', modelRef: { name: model }, inputMap: { X: 'once.Y' } },
      ],
    },
  }
}
