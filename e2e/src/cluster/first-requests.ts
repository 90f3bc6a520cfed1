import { request } from 'node:http'
import type { PlainObject } from '@tutti/kube/testing'
import { InferenceClient } from '@tutti/protocol/client'
import type { Test } from 'tap'
import { toFloats } from '../tensors.ts'
import { adderFrom, chain, INPUT, SPACE, sumOf } from './adders.ts'
import { apply, kubectl } from './kubectl.ts'
import { openWorkloads } from './workloads.ts'

const COUNT = 10
const HOSTS = 5
/** Port of the routers' listener for REST from outside. */
const EDGE_PORT = 9000
/** Pods that start at the same time: they share the cores of one machine. */
const AT_ONCE = 5

/**
 * The first call to each of five new hosts, at the listener for outside of every router: the kubelet renews mounted Secrets every
 * minute, as kubelets do unless they are told otherwise. What an ingress controller answers after that is its own.
 */
export async function showFirstHosts(t: Test): Promise<void> {
  const routers = await openWorkloads(SPACE).pods('app.kubernetes.io/component=router')
  const model = adderFrom('hosted', { storageUri: 'pvc://models/plus-one' })
  await apply(model)
  for (let i = 0; i < HOSTS; i += 1) {
    const name = `hosted-${i}`
    const host = `${name}.test`
    const { spec, ...ensemble } = chain(name, ['hosted'])
    await apply({ ...ensemble, spec: { ...spec, expose: { ingress: { hosts: [host] } } } })
    const wait = ['--for=condition=Ready', '--timeout=300s', `--namespace=${SPACE}`]
    await kubectl('wait', `ensemble/${name}`, ...wait)
    const calls = routers.map(({ status }) => readEnsemble(status.podIP, host, name))
    t.same(await Promise.all(calls), [200, 200], host)
  }
  const ensembles = Array.from({ length: HOSTS }, (_, i) => `ensemble/hosted-${i}`)
  await kubectl('delete', ...ensembles, 'model/hosted', `--namespace=${SPACE}`)
}

/** The status of a call to a host; fetch sets the header itself. */
function readEnsemble(address: string, host: string, name: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const path = `/v2/models/${name}/ready`
    request({ host: address, port: EDGE_PORT, path, headers: { host } }, (answer) =>
      resolve(answer.resume().statusCode),
    )
      .on('error', reject)
      .end()
  })
}

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
