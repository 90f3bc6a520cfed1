import type { PlainObject } from '@tutti/kube/testing'
import { InferenceClient } from '@tutti/protocol'
import type { Test } from 'tap'
import { toFloats } from '../tensors.ts'
import { adderFrom, chain, INPUT, SPACE, sumOf } from './adders.ts'
import { apply, kubectl } from './kubectl.ts'
import { openWorkloads } from './workloads.ts'

const COUNT = 10
/** Pods that start at the same time: they share the cores of one machine. */
const AT_ONCE = 5

/** Ready means routable: every router answers the first request to a Model or an Ensemble that is Ready. All names are new. */
export async function showFirstRequests(t: Test): Promise<void> {
  const routers = await openWorkloads(SPACE).pods('app.kubernetes.io/component=router')
  t.equal(routers.length, 2)
  const clients = routers.map(({ status }) => {
    return new InferenceClient({ address: `${status.podIP}:8001` })
  })
  t.teardown(() => clients.forEach((client) => client.close()))
  const askOnceReady = async ({ kind, metadata }: PlainObject, added: number): Promise<void> => {
    const modelName: string = metadata.name
    const object = `${kind.toLowerCase()}/${modelName}`
    const wait = ['--for=condition=Ready', '--timeout=300s', `--namespace=${SPACE}`]
    await kubectl('wait', object, ...wait)
    const answers = await Promise.allSettled(
      clients.map((client) => client.infer({ modelName, inputs: [INPUT] })),
    )
    for (const answer of answers) {
      if (answer.status === 'rejected') t.fail(`${object}: ${answer.reason}`)
      else t.same(answer.value.outputs.map(toFloats), [toFloats({ data: sumOf(added) })], object)
    }
  }
  for (let first = 0; first < COUNT; first += AT_ONCE) {
    await Promise.all(
      Array.from({ length: AT_ONCE }, async (_, i) => {
        const name = `new-${first + i}`
        const model = adderFrom(name, { storageUri: 'pvc://models/plus-one' })
        const ensemble = chain(`twice-${name}`, [name, name])
        await apply(model, ensemble)
        await Promise.all([askOnceReady(model, 1), askOnceReady(ensemble, 2)])
        const objects = [`ensemble/twice-${name}`, `model/${name}`]
        await kubectl('delete', ...objects, `--namespace=${SPACE}`)
      }),
    )
  }
}
