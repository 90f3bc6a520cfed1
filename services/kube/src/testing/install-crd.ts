import { until } from '@tutti/chassis/testing'
import type { PlainClient, PlainObject } from './plain-client.ts'

const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'

/** Applies a CustomResourceDefinition, and waits until the server lists and serves its objects. */
export async function installCrd(plain: PlainClient, crd: PlainObject): Promise<void> {
  const { group, names, versions } = crd['spec']
  await plain.apply(`${CRDS}/${crd['metadata'].name}`, {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    ...crd,
  })
  const version = `/apis/${group}/${versions[0].name}`
  await until(`${names.plural} are served`, async () => {
    const { body } = await plain.send('GET', version)
    const listed: readonly PlainObject[] = body['resources'] ?? []
    const { status } = await plain.send('GET', `${version}/${names.plural}`)
    return status === 200 && listed.some(({ name }) => name === names.plural)
  })
}
