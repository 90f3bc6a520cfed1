import t from 'tap'
import type { KubeObject, Stored } from '../object.ts'
import { withoutManagedFields } from './trim.ts'

await t.test('who owns which field is left out, the rest is as it was', async (t) => {
  const metadata = { name: 'a', uid: 'u', resourceVersion: '1', creationTimestamp: 'now' }
  const object: Stored<KubeObject> = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      ...metadata,
      annotations: { 'kubectl.kubernetes.io/last-applied-configuration': '{}', mine: 'x' },
      managedFields: [{ manager: 'm', operation: 'Apply', apiVersion: 'v1' }],
    },
  }
  const before = JSON.stringify(object)
  t.same(withoutManagedFields(object).metadata, { ...metadata, annotations: { mine: 'x' } })
  t.equal(JSON.stringify(object), before)
  const plain = { ...object, metadata: { ...metadata, annotations: { mine: 'x' } } }
  t.same(withoutManagedFields(plain), plain)
})
