// needs: apiserver
import { type PlainObject, withoutKube } from '@tutti/kube/testing'
import t, { type Test } from 'tap'
import type { CaseOperator } from '../testing/case-operator.ts'
import { type CasePlace, openCaseRig } from '../testing/case-rig.ts'
import { sideBySide } from '../testing/side-by-side.ts'

const skip = withoutKube('kube-controller-manager', 'kube-scheduler')

/** Allows so much of each, or all again; resolves once Kubernetes has counted what there is. */
async function allow(place: CasePlace, hard: PlainObject): Promise<void> {
  const path = place.path('resourcequotas', 'few')
  const head = { apiVersion: 'v1', kind: 'ResourceQuota', metadata: { name: 'few' } }
  await place.plain.apply(path, { ...head, spec: { hard } })
  await place.plain.until(path, (quota) => {
    const { hard: counted = {}, used = {} } = quota?.['status'] ?? {}
    return Object.entries(hard).every(([name, most]) => counted[name] === most && name in used)
  })
}

/** Until a condition says so; its message tells what the quota said. */
async function untilRefused(
  t: Test,
  place: CasePlace,
  [plural, name, wanted]: readonly [string, string, string],
): Promise<void> {
  const object = await place.condition(plural, name, wanted)
  const [type] = wanted.split('=')
  const { message } = object['status'].conditions.find((one: PlainObject) => one['type'] === type)
  t.match(message, /exceeded quota: few/, `${name}: ${wanted}`)
}

/** Rests between its tries, which become rarer: in a hot loop it would never rest. */
async function restsWhileRefused(t: Test, { proxy, atRest }: CaseOperator): Promise<void> {
  await atRest()
  const refused = proxy.writes.filter(({ status }) => status === 403).length
  t.ok(refused > 0 && refused < 60, `${refused} writes were refused`)
}

async function allReady(place: CasePlace): Promise<void> {
  await place.ready('models', 'yolo')
  await place.ready('ensembles', 'ens')
}

await t.test('a quota of the namespace', { skip }, async (t) => {
  const rig = await openCaseRig(t)
  /** A namespace without a quota: it shows what is there, and said, then. */
  const unbound = await rig.openPlace()
  const free = await unbound.startOperator(t)
  await unbound.applyModel('yolo')
  await unbound.applyEnsemble('ens', 'yolo')
  await allReady(unbound)
  await free.atRest()
  const wanted = await unbound.look()
  await free.stop()

  /** A Model and an Ensemble where a quota stands in their way. */
  const begin = async (t: Test, hard: PlainObject) => {
    const place = await rig.openPlace()
    await allow(place, hard)
    const operator = await place.startOperator(t)
    await place.applyModel('yolo')
    await place.applyEnsemble('ens', 'yolo')
    return { place, operator }
  }
  /** The test only raises the quota. */
  const heals = async (
    t: Test,
    o: { readonly place: CasePlace; readonly operator: CaseOperator },
    hard: PlainObject,
  ): Promise<void> => {
    await allow(o.place, hard)
    await allReady(o.place)
    await o.place.condition('models', 'yolo', 'Degraded=False/AsExpected')
    await o.operator.atRest()
    t.same(await o.place.look(), wanted, 'as if there had never been a quota')
  }

  await sideBySide(t, {
    'case 3: it refuses Services': async (t: Test) => {
      const o = await begin(t, { services: '0' })
      await untilRefused(t, o.place, ['models', 'yolo', 'Degraded=True/ApplyFailed'])
      await untilRefused(t, o.place, ['ensembles', 'ens', 'RouterReady=False/RouterRefused'])
      await restsWhileRefused(t, o.operator)
      await heals(t, o, { services: '3' })
    },

    'case 3: it refuses Secrets, and with them the credential': async (t: Test) => {
      const o = await begin(t, { secrets: '0' })
      await untilRefused(t, o.place, ['ensembles', 'ens', 'RouterReady=False/CredentialMissing'])
      await untilRefused(t, o.place, ['models', 'yolo', 'Routable=False/CredentialMissing'])
      await restsWhileRefused(t, o.operator)
      await heals(t, o, { secrets: '2' })
    },

    'case 3: it refuses pods': async (t: Test) => {
      const o = await begin(t, { pods: '0' })
      await untilRefused(t, o.place, ['models', 'yolo', 'WorkloadAvailable=False/FailedCreate'])
      await untilRefused(t, o.place, ['models', 'yolo', 'Ready=False/FailedCreate'])
      await untilRefused(t, o.place, ['ensembles', 'ens', 'RouterReady=False/FailedCreate'])
      await o.operator.atRest()
      await heals(t, o, { pods: '2' })
    },

    'case 3: it refuses ControllerRevisions': async (t: Test) => {
      const o = await begin(t, { 'count/controllerrevisions.apps': '0' })
      await untilRefused(t, o.place, ['models', 'yolo', 'Degraded=True/ApplyFailed'])
      await restsWhileRefused(t, o.operator)
      await allow(o.place, { 'count/controllerrevisions.apps': '1' })
      await o.place.ready('models', 'yolo')
      await untilRefused(t, o.place, ['ensembles', 'ens', 'Accepted=False/RevisionRefused'])
      await restsWhileRefused(t, o.operator)
      await heals(t, o, { 'count/controllerrevisions.apps': '2' })
    },

    'case 3: it refuses Ingresses': async (t: Test) => {
      const o = await begin(t, { 'count/ingresses.networking.k8s.io': '0' })
      const expose = { ingress: { hosts: ['a.example'] } }
      await o.place.applyEnsemble('ens', 'yolo', { expose })
      await untilRefused(t, o.place, ['ensembles', 'ens', 'Degraded=True/RouteRefused'])
      await restsWhileRefused(t, o.operator)
      await allow(o.place, { 'count/ingresses.networking.k8s.io': '2' })
      await o.place.ready('ensembles', 'ens')
    },

    'case 3: it is too small for the router that somebody deleted': async (t: Test) => {
      const o = await begin(t, { 'count/deployments.apps': '2' })
      await allReady(o.place)
      await allow(o.place, { 'count/deployments.apps': '1' })
      await o.place.plain.delete(o.place.path('deployments', 'tutti-router'))
      await untilRefused(t, o.place, ['models', 'yolo', 'Routable=False/RouterRefused'])
      await untilRefused(t, o.place, ['models', 'yolo', 'Ready=False/RouterRefused'])
      await untilRefused(t, o.place, ['ensembles', 'ens', 'RouterReady=False/RouterRefused'])
      await restsWhileRefused(t, o.operator)
      await heals(t, o, { 'count/deployments.apps': '2' })
    },
  })
})
