import type { Desired, KubeObject } from '@tutti/kube'
import t from 'tap'
import { APPLIED_ANNOTATION, holds, withMark, withoutMark } from './applied-mark.ts'

const desired: Desired<KubeObject> & { readonly spec: object } = {
  metadata: { name: 'a', namespace: 'ns', annotations: { note: 'x' } },
  spec: { replicas: 2, absent: undefined, containers: [{ name: 'main', args: ['-v'] }] },
}

await t.test('what is applied carries its digest, and nothing else is added', async (t) => {
  const marked = withMark({ desired, digest: 'd1' })
  t.same(marked.metadata.annotations, { note: 'x', [APPLIED_ANNOTATION]: 'd1' })
  t.same(withoutMark(marked), desired)
  const plain = { ...desired, metadata: { name: 'a' } }
  t.same(withoutMark(withMark({ desired: plain, digest: 'd1' })), plain)
})

await t.test('what the server adds does not matter', async (t) => {
  const more = {
    paused: false,
    replicas: 2,
    containers: [{ name: 'main', args: ['-v'], imagePullPolicy: 'Always' }],
  }
  t.ok(holds(desired.spec, desired.spec))
  t.ok(holds(more, desired.spec))
})

await t.test('what has another value does not hold', async (t) => {
  const [container] = [{ name: 'main', args: ['-v'] }]
  const changed = {
    'another value': { replicas: 3, containers: [container] },
    'another type': { replicas: '2', containers: [container] },
    'a value that is gone': { containers: [container] },
    'an element more': { replicas: 2, containers: [container, { name: 'sidecar' }] },
    'an element less': { replicas: 2, containers: [] },
    'another element': { replicas: 2, containers: [{ name: 'main', args: ['-q'] }] },
    'no list': { replicas: 2, containers: 'main' },
    'no object': { replicas: 2, containers: ['main'] },
  }
  for (const [name, spec] of Object.entries(changed)) t.notOk(holds(spec, desired.spec), name)
})
