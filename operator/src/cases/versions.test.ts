// needs: apiserver
import { type PlainObject, withoutKube } from '@tutti/kube/testing'
import t, { type Test } from 'tap'
import { APPLIED_ANNOTATION } from '../runtime/applied-mark.ts'
import { FIELD_MANAGER } from '../runtime/children.ts'
import type { CaseOperator } from '../testing/case-operator.ts'
import { type CasePlace, openCaseRig } from '../testing/case-rig.ts'
import { isThere } from '../testing/namespaced.ts'
import { installCrds } from '../testing/prepare-server.ts'
import { sideBySide } from '../testing/side-by-side.ts'

const skip = withoutKube('kube-controller-manager', 'kube-scheduler')

const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const NEXT = { type: 'Next', status: 'True', reason: 'Next', message: 'x' }

/** How another version says what ours says. Pods are made of the same. */
interface OtherVersion {
  readonly child: (object: PlainObject) => PlainObject
  readonly status: (status: PlainObject) => PlainObject
}

/** It puts a label on everything, has a field more, another value of one of ours, and a condition more. */
const LATER: OtherVersion = {
  child: ({ metadata, spec, ...object }) => {
    const { labels, annotations } = metadata
    const more: Readonly<Record<string, PlainObject>> = {
      Service: { publishNotReadyAddresses: true },
      NetworkPolicy: { policyTypes: ['Ingress', 'Egress'] },
    }
    return {
      ...object,
      metadata: {
        ...metadata,
        labels: { ...labels, 'x.example/next': 'yes' },
        annotations: { ...annotations, [APPLIED_ANNOTATION]: 'next' },
      },
      ...(spec && { spec: { ...spec, ...more[object['kind']] } }),
    }
  },
  status: ({ conditions, ...status }) => {
    const lastTransitionTime = '2026-01-01T00:00:00Z'
    return { ...status, conditions: [...conditions, { ...NEXT, lastTransitionTime }] }
  },
}

function omit(object: PlainObject, keys: readonly string[]): PlainObject {
  return Object.fromEntries(Object.entries(object).filter(([key]) => !keys.includes(key)))
}

/** It marks nothing, has a label and a field less, and says less. */
const EARLIER: OtherVersion = {
  child: ({ metadata, spec, ...object }) => {
    const labels = omit(metadata.labels, ['app.kubernetes.io/name'])
    const annotations = omit(metadata.annotations, [APPLIED_ANNOTATION])
    const ports = spec?.ports?.map((port: PlainObject) => omit(port, ['appProtocol']))
    return {
      ...object,
      metadata: { ...metadata, labels, annotations },
      ...(spec && { spec: { ...spec, ...(ports && { ports }) } }),
    }
  },
  status: ({ conditions, ...status }) => ({
    ...omit(status, ['signature', 'selector']),
    conditions: conditions.filter(({ type }: PlainObject) => type !== 'Degraded'),
  }),
}

/** Says again all that the operator applied, in the operator's name and as the other version says it. */
async function rewrite(
  { plain }: CasePlace,
  { proxy }: CaseOperator,
  other: OtherVersion,
): Promise<number> {
  const applied = proxy.writes.filter(
    ({ path, query }) => query.get('fieldManager') === FIELD_MANAGER && !path.includes('/pods/'),
  )
  const last = new Map(
    applied
      .filter(({ method, query }) => method === 'PATCH' && query.has('force'))
      .map(({ path, body }) => [path, body]),
  )
  for (const [path, body] of last) {
    const { status, ...object }: PlainObject = JSON.parse(body)
    delete object['metadata'].resourceVersion
    const said = path.endsWith('/status')
      ? { ...object, status: other.status(status) }
      : other.child(object)
    await plain.apply(path, said, FIELD_MANAGER)
  }
  return last.size
}

/** Which pods there are, and since when clients may rely on the Model and the Ensemble. */
async function lookAtService({ plain, path }: CasePlace) {
  const since = async (plural: string, name: string): Promise<string> => {
    const { status } = await plain.get(path(plural, name))
    const ready = status.conditions.find(({ type }: PlainObject) => type === 'Ready')
    return `${ready.status} ${ready.lastTransitionTime}`
  }
  return {
    pods: new Set((await plain.list(path('pods'))).map(({ metadata }) => metadata.uid)),
    model: await since('models', 'yolo'),
    ensemble: await since('ensembles', 'ens'),
  }
}

const pathsOf = ({ proxy }: Pick<CaseOperator, 'proxy'>): readonly string[] =>
  proxy.writes.map(({ path }) => path).toSorted()

async function applyBoth(place: CasePlace, spec: PlainObject = {}): Promise<void> {
  await place.applyModel('yolo', spec)
  await place.applyEnsemble('ens', 'yolo', spec)
}

async function bothReady(place: CasePlace): Promise<void> {
  await place.ready('models', 'yolo')
  await place.ready('ensembles', 'ens')
}

await t.test('versions of the operator', { skip }, async (t) => {
  const rig = await openCaseRig(t)
  const { plain } = rig.server
  const begin = async (t: Test) => {
    const place = await rig.openPlace()
    const operator = await place.startOperator(t)
    await applyBoth(place)
    await bothReady(place)
    await operator.atRest()
    return { place, operator }
  }

  await sideBySide(t, {
    'case 29: two versions at once, an upgrade and a downgrade': async (t: Test) => {
      const place = await rig.openPlace()
      const policies = ['tutti-router', 'yolo-step'].map((one) =>
        place.path('networkpolicies', one),
      )
      const first = await place.startVersion(t, { name: 'first' })
      await first.leads()
      await applyBoth(place)
      await bothReady(place)
      await first.atRest()
      const before = await place.look()
      const service = await lookAtService(place)

      // It wants another value of fields that the first one wants, too.
      const flags = ['--scrape-namespace=monitoring']
      const next = await place.startVersion(t, { name: 'next', flags })
      const [policy = ''] = policies
      await plain.delete(policy)
      await plain.until(policy, isThere)
      await first.atRest()
      await next.atRest()
      t.same(pathsOf(next), [], 'one that stands by writes nothing')
      t.same(await place.look(), before)

      await first.stop()
      await next.leads()
      await next.atRest()
      t.same(pathsOf(next), policies, 'it writes what it wants otherwise, once')
      t.notSame(await place.look(), before)
      t.same(await lookAtService(place), service, 'the same pods serve without a pause')

      const last = await place.startVersion(t, { name: 'last' })
      await next.stop()
      await last.leads()
      await last.atRest()
      t.same(pathsOf(last), policies)
      t.same(await place.look(), before)
      t.same(await lookAtService(place), service)
    },

    'case 29: what a later or an earlier version has written': async (t: Test) => {
      const { place, operator } = await begin(t)
      const before = await place.look()
      const service = await lookAtService(place)
      await operator.stop()
      for (const other of [LATER, EARLIER]) {
        const count = await rewrite(place, operator, other)
        t.ok(count > 10, `${count} are written in other words`)
        t.notSame(await place.look(), before)
        const again = await place.startOperator(t)
        await again.atRest()
        t.same(await place.look(), before, 'of the other version nothing is left')
        const children = pathsOf(again).filter((path) => !path.endsWith('/status'))
        t.same(children, [...new Set(children)], 'each child is written once')
        const { pods, ensemble } = await lookAtService(place)
        t.same(pods, service.pods)
        // A Model waits until Kubernetes has looked at its Deployment, of which even an annotation is another generation.
        t.equal(ensemble, service.ensemble, 'it serves without a pause')
        await again.stop()
      }
    },

    'case 29: what a later version has accepted, and cannot be read': async (t: Test) => {
      const { place, operator } = await begin(t)
      const { path } = place
      const service = await lookAtService(place)
      await operator.stop()
      const accepted = await plain.list(path('controllerrevisions'))
      for (const { metadata } of accepted) {
        const { name, labels, ownerReferences } = metadata
        await plain.create(path('controllerrevisions'), {
          metadata: { name: `${name}-next`, labels, ownerReferences },
          data: { kind: 'Next' },
          revision: 99,
        })
      }
      const again = await place.startOperator(t)
      await again.atRest()
      t.same(await lookAtService(place), service)
      for (const { metadata } of accepted) {
        const { revision } = await plain.get(path('controllerrevisions', metadata.name))
        t.equal(revision, 100, `${metadata.name} counts again`)
      }
      await place.applyModel('yolo', { maxBatchSize: 8 })
      await bothReady(place)
    },
  })

  // The last one: all namespaces have the same CRDs.
  await t.test('case 29: a field of a later CRD is reported, and changes nothing', async (t) => {
    const { place, operator } = await begin(t)
    const { pods } = await lookAtService(place)
    for (const plural of ['models', 'ensembles']) {
      const crd = await plain.get(`${CRDS}/${plural}.tutti.dev`)
      const { spec } = crd['spec'].versions[0].schema.openAPIV3Schema.properties
      spec.properties.hue = { type: 'string' }
      await plain.send('PUT', `${CRDS}/${plural}.tutti.dev`, { body: crd })
    }
    // It is refused until all of the server has the new CRDs.
    const isStored = (): Promise<boolean> =>
      applyBoth(place, { hue: 'red' }).then(
        () => true,
        () => false,
      )
    while (!(await isStored()));
    // Watches that are open go on to show objects as the CRDs were when they began.
    await operator.stop()
    const earlier = await place.startOperator(t)
    await place.condition('models', 'yolo', 'Accepted=False/InvalidSpec')
    await place.condition('models', 'yolo', 'WorkloadAvailable=True')
    await place.condition('ensembles', 'ens', 'Accepted=False/InvalidSpec')
    await place.condition('ensembles', 'ens', 'Degraded=True/EarlierGenerationServed')
    await earlier.atRest()
    t.same((await lookAtService(place)).pods, pods)
    await applyBoth(place)
    await bothReady(place)
    await earlier.atRest()
    t.same((await lookAtService(place)).pods, pods)
    await installCrds(rig.server)
  })
})
