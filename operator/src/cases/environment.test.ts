// needs: apiserver
import { type PlainObject, withoutKube } from '@tutti/kube/testing'
import t, { type Test } from 'tap'
import { begin, nothingLeft } from '../testing/case-life.ts'
import { MADE_KINDS, openCaseRig } from '../testing/case-rig.ts'
import { hasCondition, isGone } from '../testing/namespaced.ts'
import { installCrds, startNode } from '../testing/prepare-server.ts'
import { sideBySide } from '../testing/side-by-side.ts'

const skip = withoutKube('kube-controller-manager', 'kube-scheduler')

/** All that the operator writes or reads, but Services. */
const MOST = [
  ...MADE_KINDS.filter((plural) => plural !== 'services'),
  'models',
  'ensembles',
  'pods',
  'httproutes',
]

const MODEL_HEAD = { apiVersion: 'tutti.dev/v1alpha1', kind: 'Model' }

/** As cases have them, those first that need the others. */
const BOTH = [
  ['ensembles', 'ens'],
  ['models', 'yolo'],
] as const

const uidsOf = (objects: readonly PlainObject[]): readonly string[] =>
  objects.map(({ metadata }) => String(metadata.uid)).toSorted()

function isOwnedBy(object: PlainObject | undefined, uid: string): boolean {
  return object?.['metadata'].ownerReferences?.[0]?.uid === uid
}

/** A node counts as lost that has said nothing for that long. */
const LOST_SOON = ['--node-monitor-grace-period=12s', '--node-monitor-period=1s']

/** The CRD without these fields, as an older version of it was. */
function toOlder(crd: PlainObject, ...fields: readonly string[]): PlainObject {
  const older = structuredClone(crd)
  for (const { schema } of older['spec'].versions) {
    for (const field of fields) {
      const [part = '', name = ''] = field.split('.')
      delete schema.openAPIV3Schema.properties[part].properties[name]
    }
  }
  return older
}

await t.test('what is around the operator changes', { skip }, async (t) => {
  const rig = await openCaseRig(t, { controllerFlags: LOST_SOON })
  const { plain } = rig.server

  await sideBySide(t, {
    'case 16: deletion in the foreground and in the background': async (t: Test) => {
      for (const propagationPolicy of ['Foreground', 'Background']) {
        const { place, operator } = await begin(t, rig)
        await place.applyEnsemble('ens', 'yolo')
        await place.ready('ensembles', 'ens')
        await operator.atRest()
        const count = operator.proxy.writes.length
        for (const [plural, name] of BOTH) {
          await plain.delete(place.path(plural, name), { propagationPolicy })
        }
        for (const [plural, name] of BOTH) await plain.until(place.path(plural, name), isGone)
        await nothingLeft(place)
        await operator.atRest()
        const made = operator.proxy.writes.slice(count).filter(({ status }) => status === 201)
        t.same(made, [], 'nothing is made again')
      }
    },

    'case 16: deletion that leaves orphans': async (t: Test) => {
      const { place, operator } = await begin(t, rig)
      await place.applyModel('other')
      await place.applyEnsemble('ens', 'yolo')
      await place.ready('ensembles', 'ens')
      await place.ready('models', 'other')
      await operator.atRest()
      const ofYolo = `labelSelector=app.kubernetes.io%2Finstance+in+%28yolo%2Cens%29`
      const children = async () =>
        (
          await Promise.all(
            MADE_KINDS.map((plural) => plain.list(`${place.path(plural)}?${ofYolo}`)),
          )
        ).flat()
      const before = await children()
      for (const [plural, name] of BOTH) {
        await plain.delete(place.path(plural, name), { propagationPolicy: 'Orphan' })
        await plain.until(place.path(plural, name), isGone)
      }
      await operator.atRest()
      const orphans = await children()
      t.same(uidsOf(orphans), uidsOf(before), 'all of them stay')
      for (const { metadata } of orphans) t.notOk(metadata.ownerReferences, metadata.name)

      // Made again, it takes none of them, and says which are in its way.
      await place.applyModel('yolo', { timeouts: { drain: '5s' } })
      await place.applyEnsemble('ens', 'yolo')
      const refused = await place.condition('models', 'yolo', 'Degraded=True/ObjectConflict')
      t.ok(hasCondition(refused, 'Ready=False'))
      await operator.atRest()
      t.same(
        uidsOf(await children()).filter((uid) => uidsOf(orphans).includes(uid)),
        uidsOf(orphans),
      )

      // Once they are gone it makes its own, and what was accepted before counts no more.
      for (const plural of ['deployments', 'services', 'serviceaccounts', 'networkpolicies']) {
        await plain.delete(place.path(plural, 'yolo-step'))
      }
      const { metadata: model } = await place.applyModel('yolo', { timeouts: { drain: '7s' } })
      await place.ready('models', 'yolo')
      const { metadata: ensemble } = await place.ready('ensembles', 'ens')
      await operator.atRest()
      const owners = [model.uid, ensemble.uid]
      for (const { metadata } of await children()) {
        t.ok(owners.includes(metadata.ownerReferences?.[0].uid), metadata.name)
      }
    },

    'case 16: a Router is deleted while a Model needs it': async (t: Test) => {
      for (const propagationPolicy of ['Foreground', 'Background', 'Orphan']) {
        const { place, operator } = await begin(t, rig)
        const path = place.path('routers', 'default')
        const idsOf = async (plural: string): Promise<readonly string[]> =>
          uidsOf(await plain.list(place.path(plural)))
        const { metadata: first } = await plain.get(path)
        const steps = async (): Promise<readonly string[]> =>
          uidsOf(await plain.list(`${place.path('pods')}?labelSelector=tutti.dev%2Fmodel`))
        const [credential, stepsBefore] = [await idsOf('secrets'), await steps()]
        const deployments = await idsOf('deployments')
        await plain.delete(path, { propagationPolicy })
        const next = await plain.until(
          path,
          (now) => ![undefined, first.uid].includes(now?.['metadata'].uid),
        )
        await plain.until(place.path('deployments', 'tutti-router'), (now) =>
          isOwnedBy(now, next?.['metadata'].uid),
        )
        await place.condition('routers', 'default', 'Ready=True')
        await place.ready('models', 'yolo')
        await operator.atRest()
        const { metadata } = await plain.get(place.path('secrets', 'tutti-nats'))
        t.ok(credential.includes(metadata.uid), `${propagationPolicy}: steps keep their credential`)
        t.match(metadata.ownerReferences, [{ uid: next?.['metadata'].uid }, { kind: 'Model' }])
        t.same(await steps(), stepsBefore)
        if (propagationPolicy === 'Orphan') t.same(await idsOf('deployments'), deployments)
        await plain.delete(place.path('models', 'yolo'))
        await nothingLeft(place)
      }
    },

    'case 17: the namespace is being deleted': async (t: Test) => {
      const { place, operator } = await begin(t, rig)
      const path = `/api/v1/namespaces/${place.namespace}`
      // It stays as long as something in it does.
      await plain.create(place.path('configmaps'), {
        metadata: { name: 'held', finalizers: ['tutti.dev/test'] },
      })
      // A Model that outlives its pods for a while, as one with somebody's finalizer does.
      await plain.patch(place.path('models', 'yolo'), {
        metadata: { finalizers: ['x.example/held'] },
      })
      await place.applyEnsemble('ens', 'yolo')
      await operator.atRest()
      await plain.delete(path)
      await plain.until(place.path('deployments', 'yolo-step'), isGone)
      await plain.until(place.path('deployments', 'tutti-router'), isGone)
      await operator.atRest()
      const refused = operator.proxy.writes.filter(({ status }) => status === 403).length
      t.ok(refused < 20, `${refused} writes were refused`)
      for (const plural of ['models', 'configmaps']) {
        const name = plural === 'models' ? 'yolo' : 'held'
        await plain.patch(place.path(plural, name), { metadata: { finalizers: null } })
      }
      await plain.until(path, isGone)
      await operator.atRest()
    },

    'case 25: a right is taken away, and given back': async (t: Test) => {
      const token = await rig.server.createToken('rights', 'operator')
      const role = (name: string, rules: readonly PlainObject[]) =>
        plain.apply(`/apis/rbac.authorization.k8s.io/v1/clusterroles/${name}`, {
          apiVersion: 'rbac.authorization.k8s.io/v1',
          kind: 'ClusterRole',
          metadata: { name },
          rules,
        })
      const all = { apiGroups: ['*'], verbs: ['*'] }
      const others = { ...all, resources: [...MOST, ...MOST.map((one) => `${one}/status`)] }
      const services = { ...all, resources: ['services'] }
      const reading = { ...services, verbs: ['get', 'list', 'watch'] }
      await role('operator', [others, services])
      await plain.create('/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {
        metadata: { name: 'operator' },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'operator' },
        subjects: [{ kind: 'ServiceAccount', namespace: 'rights', name: 'operator' }],
      })
      const { place, operator } = await begin(t, rig, { token })
      await role('operator', [others, reading])
      await place.applyModel('late')
      await place.condition('models', 'late', 'Degraded=True/ApplyFailed')
      await place.applyModel('yolo', { maxBatchSize: 2 })
      await place.ready('models', 'yolo')
      await plain.get(place.path('deployments', 'late-step'))
      await operator.atRest()
      await role('operator', [others, services])
      await place.condition('models', 'late', 'Degraded=False')
      await place.ready('models', 'late')
      await plain.get(place.path('services', 'late-step'))
    },

    'case 31: one Model hangs, others go on': async (t: Test) => {
      const { place, operator } = await begin(t, rig)
      const held = Promise.withResolvers<void>()
      operator.proxy.addRule({
        method: 'PATCH',
        path: /\/poison/,
        isWatch: false,
        times: 1,
        fault: { type: 'wait', until: held.promise },
      })
      operator.proxy.addRule({
        method: 'PATCH',
        path: /\/poison/,
        isWatch: false,
        times: 3,
        fault: { type: 'answer', status: 500 },
      })
      await place.applyModel('poison')
      for (const name of ['one', 'two']) {
        await place.applyModel(name)
        await place.ready('models', name)
      }
      await place.applyModel('yolo', { maxBatchSize: 2 })
      await place.ready('models', 'yolo')
      const { status } = await plain.get(place.path('models', 'poison'))
      t.same(status, { observedGeneration: -1 }, 'as the API server made it')
      held.resolve()
      await place.ready('models', 'poison')
      await operator.atRest()
    },

    'case 33: the node of a pod is lost': async (t: Test) => {
      const stopNode = await startNode(plain, 'node-2', ['test'])
      const place = await rig.openPlace()
      const operator = await place.startOperator(t)
      const tolerations = [
        // Others' pods do not go to that node.
        { key: 'test', operator: 'Exists' },
        ...['not-ready', 'unreachable'].map((key) => ({
          key: `node.kubernetes.io/${key}`,
          operator: 'Exists',
          effect: 'NoExecute',
          tolerationSeconds: 1,
        })),
      ]
      const nodeSelector = { 'kubernetes.io/hostname': 'node-2' }
      await place.applyModel('lost', {
        podTemplate: { spec: { nodeSelector, tolerations } },
      })
      const { status: before } = await place.ready('models', 'lost')
      const [pod] = await plain.list(`${place.path('pods')}?labelSelector=tutti.dev%2Fmodel%3Dlost`)
      rig.player.lostNodes.add('node-2')
      stopNode()
      const seen = await place.condition('models', 'lost', 'Degraded=True/NodeNotReady')
      t.match(seen['status'].lastFailure, { pod: pod?.['metadata'].name, message: /node-2/ })
      // It cannot end, and the one in its place finds no node.
      const stuck = await place.condition('models', 'lost', 'Degraded=True/Unschedulable')
      t.ok(hasCondition(stuck, 'WorkloadAvailable=False'))
      t.ok(hasCondition(stuck, 'Ready=False'))
      const left = await plain.get(place.path('pods', pod?.['metadata'].name))
      t.ok(left['metadata'].deletionTimestamp)
      await operator.atRest()
      t.teardown(await startNode(plain, 'node-3', ['test']))
      const elsewhere = { 'kubernetes.io/hostname': 'node-3' }
      await place.applyModel('lost', {
        podTemplate: { spec: { nodeSelector: elsewhere, tolerations } },
      })
      const { status: after } = await place.ready('models', 'lost')
      t.same(after.revisions, before.revisions)
    },
  })

  // The last one: all namespaces have the same CRDs.
  await t.test('case 24: a CRD that is older than the operator', async (t) => {
    const { place, operator } = await begin(t, rig)
    const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/models.tutti.dev'
    const crd = await plain.get(path)
    await plain.send('PUT', path, { body: toOlder(crd, 'status.signature', 'spec.warmup') })
    const isOlder = async (): Promise<boolean> => {
      const query = 'fieldManager=test&dryRun=All&force=true'
      const { status } = await plain.send(
        'PATCH',
        `${place.path('models', 'yolo')}/status?${query}`,
        {
          body: { ...MODEL_HEAD, metadata: { name: 'yolo' }, status: { signature: {} } },
          contentType: 'application/apply-patch+yaml',
        },
      )
      return status === 500
    }
    while (!(await isOlder()));
    await place.applyModel('late')
    await place.applyModel('yolo', { maxBatchSize: 2 })
    // It makes what it can make, and cannot say so.
    await plain.until(
      place.path('deployments', 'late-step'),
      (found) => found?.['status']?.replicas === 1,
    )
    await operator.atRest()
    const failed = operator.proxy.writes.filter(
      ({ path: written, status }) => written.endsWith('/status') && status === 500,
    )
    t.ok(failed.length > 0 && failed.length < 30, `${failed.length} writes failed`)
    await installCrds(rig.server)
    for (const name of ['late', 'yolo']) await place.ready('models', name)
    await operator.atRest()
  })
})
