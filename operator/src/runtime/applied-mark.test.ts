import type { Desired, KubeObject } from '@tutti/kube'
import t from 'tap'
import { storedObject } from '../testing/stored-object.ts'
import { APPLIED_ANNOTATION, isAsApplied, withMark } from './applied-mark.ts'

const desired: Desired<KubeObject> & { readonly spec: object } = {
  metadata: { name: 'a', namespace: 'ns', annotations: { note: 'x' } },
  spec: { replicas: 2, absent: undefined, containers: [{ name: 'main', args: ['-v'] }] },
}
const given = { desired, digest: 'd1' }

/** As the server has it. */
const stored = (
  spec: object = desired.spec,
  annotations: Record<string, string> = { note: 'x', [APPLIED_ANNOTATION]: 'd1' },
) => storedObject({ name: 'a', annotations }, { spec })

await t.test('what is applied carries its digest', async (t) => {
  t.same(withMark(given).metadata.annotations, { note: 'x', [APPLIED_ANNOTATION]: 'd1' })
  t.same({ ...withMark(given), metadata: desired.metadata }, desired, 'and nothing else')
})

await t.test('what the server and others add does not matter', async (t) => {
  t.ok(isAsApplied(stored(), given))
  const more = {
    paused: false,
    replicas: 2,
    containers: [{ name: 'main', args: ['-v'], imagePullPolicy: 'Always' }],
  }
  t.ok(isAsApplied(stored(more, { ...stored().metadata.annotations, other: 'y' }), given))
  t.ok(isAsApplied(stored({ ...more, list: undefined }), { ...given, desired: { ...desired } }))
})

await t.test('whatever is not as it was applied is applied again', async (t) => {
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
  for (const [name, spec] of Object.entries(changed))
    t.notOk(isAsApplied(stored(spec), given), name)
  t.notOk(isAsApplied(stored(desired.spec, { note: 'x' }), given), 'no mark')
  t.notOk(isAsApplied(stored(desired.spec, { [APPLIED_ANNOTATION]: 'd1' }), given), 'an annotation')
  t.notOk(isAsApplied(stored(), { ...given, digest: 'd2' }), 'another digest')
})
