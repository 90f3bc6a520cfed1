// needs: apiserver
import { type PlainObject, withoutKube } from '@tutti/kube/testing'
import t, { type Test } from 'tap'
import { allowReader } from '../testing/allow-reader.ts'
import { type CasePlace, openCaseRig } from '../testing/case-rig.ts'
import { checkDoctor } from '../testing/check-doctor.ts'
import { startKubelet } from '../testing/log-kubelet.ts'
import { FETCH_FAILED } from '../testing/model-looks.ts'
import { runKubectlTutti, spawnKubectlTutti } from '../testing/run-kubectl-tutti.ts'
import { sideBySide } from '../testing/side-by-side.ts'

const skip = withoutKube('kube-controller-manager', 'kube-scheduler')

/** A container `main` in this state, whatever it was before. */
function statusOf(state: PlainObject, lastState: PlainObject = {}): PlainObject {
  const image = { image: 'x', imageID: 'x', ready: false, restartCount: 3, started: false }
  const containerStatuses = [{ name: 'main', ...image, state, lastState }]
  return { phase: 'Pending', containerStatuses }
}

const PULL = { reason: 'ImagePullBackOff', message: 'Back-off pulling image "x"' }
/** Faults of the pods of a Model, by its name: what the status of a pod says. */
const BROKEN: Readonly<Record<string, PlainObject>> = {
  'no-image': statusOf({ waiting: PULL }),
  crashing: statusOf(
    { waiting: { reason: 'CrashLoopBackOff', message: 'back-off 5m0s' } },
    { terminated: { exitCode: 3, reason: 'Error', message: 'cannot read model.onnx' } },
  ),
  'no-memory': statusOf(
    { waiting: { reason: 'CrashLoopBackOff', message: 'back-off 5m0s' } },
    { terminated: { exitCode: 137, reason: 'OOMKilled' } },
  ),
  'no-files': FETCH_FAILED,
  probed: statusOf({ running: { startedAt: new Date().toISOString() } }),
}

/** Reads what a user sees in a namespace. */
async function statusIn(kubeconfig: string, place: CasePlace, ...args: readonly string[]) {
  const said = await runKubectlTutti(kubeconfig, 'status', '-n', place.namespace, ...args)
  if (said.out === '') throw new Error(said.err)
  return said
}

async function causesIn(kubeconfig: string, place: CasePlace): Promise<Record<string, unknown>> {
  const { code, out } = await statusIn(kubeconfig, place, '--output=json')
  const { namespaces } = JSON.parse(out)
  const found = namespaces[0].resources.map(({ kind, name, state, cause }: PlainObject) => [
    `${kind} ${name}`,
    [state, cause?.reason, cause?.message].filter((text) => text !== undefined).join(' '),
  ])
  return { code, ...Object.fromEntries(found) }
}

/** An event of the kubelet about the only pod of a Model. */
async function warn(place: CasePlace, model: string, o: { reason: string; message: string }) {
  const pods = await place.plain.list(
    `${place.path('pods')}?labelSelector=tutti.dev%2Fmodel%3D${model}`,
  )
  const { name, uid } = pods[0]?.['metadata'] ?? {}
  const now = new Date().toISOString().replace(/\.\d+Z$/, 'Z')
  await place.plain.create(`/api/v1/namespaces/${place.namespace}/events`, {
    metadata: { name: `${model}-warning`, namespace: place.namespace },
    involvedObject: { kind: 'Pod', namespace: place.namespace, name, uid },
    ...o,
    type: 'Warning',
    source: { component: 'kubelet' },
    firstTimestamp: now,
    lastTimestamp: now,
    count: 1,
  })
}

await t.test('kubectl tutti, beside a real operator', { skip }, async (t) => {
  const users = [{ token: 'reader-token', user: 'reader' }]
  const rig = await openCaseRig(t, { users })
  const { server, plays } = rig
  const kubeconfig = await server.kubeconfig()
  for (const [model, status] of Object.entries(BROKEN)) {
    plays.set(model, { kind: 'status', status })
  }

  await sideBySide(t, {
    'status shows a tree, and exits with 0, when all is ready': async (t: Test) => {
      const place = await rig.openPlace()
      t.match(await statusIn(kubeconfig, place), { code: 0, out: /no Ensembles or Models in/ })
      await place.startOperator(t)
      await place.applyModel('yolo', { modelName: 'yolo_v8.1' })
      await place.applyEnsemble('ens', 'yolo_v8.1')
      await place.ready('ensembles', 'ens')
      await place.ready('models', 'yolo')
      const { code, out } = await statusIn(kubeconfig, place)
      t.equal(code, 0, out)
      t.match(
        out,
        new RegExp(
          [
            `namespace ${place.namespace}`,
            'Ensemble ens +Ready +1/1 steps',
            '└─ detect: Model yolo +Ready +1/1 pod',
            '   └─ Pod yolo-step-\\S+ +Ready',
            'Router default +Ready +1/1 pod',
            '└─ Pod tutti-router-\\S+ +Ready',
          ].join('\\n'),
        ),
      )
      t.match(await statusIn(kubeconfig, place, 'yolo_v8.1'), { out: /\nModel yolo +Ready/ })
      const none = await runKubectlTutti(kubeconfig, 'status', 'other', '-n', place.namespace)
      t.match(none, { code: 1, err: /no Ensemble or Model 'other' in namespace case-/ })
      const all = await runKubectlTutti(kubeconfig, 'status', '-A')
      t.match(all.out, `namespace ${place.namespace}\nEnsemble ens`)
    },

    'status names the cause for each broken resource': async (t: Test) => {
      const place = await rig.openPlace()
      await place.startOperator(t)
      for (const model of Object.keys(BROKEN)) await place.applyModel(model)
      await place.applyModel('too-big', { resources: { requests: { cpu: '1000' } } })
      for (const model of [...Object.keys(BROKEN), 'too-big', 'absent']) {
        await place.applyEnsemble(`of-${model}`, model)
      }
      for (const [model, reason] of Object.entries({
        'no-image': 'ImagePullBackOff',
        crashing: 'CrashLoopBackOff',
        'no-memory': 'OOMKilled',
        'no-files': 'FetchFailed',
        'too-big': 'Unschedulable',
        probed: 'PodsNotReady',
      })) {
        await place.condition('models', model, `Ready=False/${reason}`)
      }
      await warn(place, 'probed', { reason: 'Unhealthy', message: 'Startup probe failed: 503' })
      t.match(await causesIn(kubeconfig, place), {
        code: 1,
        'Ensemble of-no-image':
          /^NotReady ImagePullBackOff not ready: detect: Model "no-image": pod ".*", container "main": Back-off pulling image "x"$/,
        'Ensemble of-crashing':
          /^NotReady CrashLoopBackOff not ready: detect: .*container "main": cannot read model.onnx/,
        'Ensemble of-no-memory':
          /^NotReady OOMKilled .*: pod ".*": container "main" ended with exit code 137$/,
        'Ensemble of-no-files': /^NotReady FetchFailed .*Model "no-files": digest differs/,
        'Ensemble of-too-big': /^NotReady Unschedulable .* 1 Insufficient cpu/,
        'Ensemble of-probed': /^NotReady Unhealthy .*pod "probed-.*": Startup probe failed: 503$/,
        'Ensemble of-absent':
          /^NotReady NotFound step "detect", Model "absent": no Model or Ensemble serves 'absent' yet/,
        'Router default': 'Ready',
      })
      const { out } = await statusIn(kubeconfig, place, 'of-no-image')
      t.match(
        out,
        new RegExp(
          [
            'Ensemble of-no-image +NotReady +0/1 steps +ImagePullBackOff: not ready: detect: .*',
            '└─ detect: Model no-image +NotReady +0/1 pod +ImagePullBackOff',
            '   └─ Pod no-image-step-\\S+ +NotReady +3 restarts +ImagePullBackOff: container "main": .*',
            'Router default +Ready',
          ].join('\\n'),
        ),
        'the cause is told where it is and on top, and not between',
      )
    },

    'status names a quota, a router that cannot start, and no operator': async (t: Test) => {
      const place = await rig.openPlace()
      const quota = place.path('resourcequotas', 'few')
      await place.plain.apply(quota, {
        apiVersion: 'v1',
        kind: 'ResourceQuota',
        metadata: { name: 'few' },
        spec: { hard: { pods: '0' } },
      })
      await place.plain.until(quota, (found) => found?.['status']?.hard?.pods === '0')
      await place.applyModel('yolo')
      t.match(await causesIn(kubeconfig, place), {
        code: 1,
        'Model yolo': /^NotReady NotObserved the operator has not looked at generation 1 yet/,
      })
      await place.startOperator(t)
      await place.applyEnsemble('ens', 'yolo')
      await place.condition('models', 'yolo', 'Ready=False/FailedCreate')
      await place.condition('ensembles', 'ens', 'RouterReady=False/FailedCreate')
      t.match(await causesIn(kubeconfig, place), {
        code: 1,
        'Ensemble ens':
          /^NotReady FailedCreate not ready: detect: Model "yolo": .*exceeded quota: few/,
        'Router default': /^NotReady FailedCreate .*exceeded quota: few/,
      })
    },

    'restart replaces the pods of an Ensemble, and waits for the new ones': async (t: Test) => {
      const place = await rig.openPlace()
      const operator = await place.startOperator(t)
      await place.applyModel('yolo')
      await place.applyEnsemble('ens', 'yolo')
      await place.ready('models', 'yolo')
      await place.ready('ensembles', 'ens')
      const before = await podsIn(place)
      t.match(await restart(kubeconfig, place, 'ens'), {
        code: 0,
        err: '',
        out: /^Model yolo: restart of Deployment yolo-step\n[^]*\nModel yolo: restarted, 1 pod\n$/,
      })
      const after = await podsIn(place)
      t.notSame(after.get('step'), before.get('step'), 'another pod')
      t.same(after.get('router'), before.get('router'), 'the router is not touched')
      t.match(await restart(kubeconfig, place, 'router'), {
        code: 0,
        out: /\nRouter: restarted, 1 pod/,
      })
      t.notSame((await podsIn(place)).get('router'), before.get('router'))
      await operator.atRest()
      await place.applyModel('yolo', { maxBatchSize: 2 })
      await place.ready('models', 'yolo')
      const { spec } = await place.plain.get(place.path('deployments', 'yolo-step'))
      const { annotations } = spec.template.metadata
      t.match(
        annotations,
        { 'kubectl.kubernetes.io/restartedAt': String },
        'the operator leaves it',
      )
    },

    'restart says why new pods do not become ready, and touches nothing that it may not': async (
      t: Test,
    ) => {
      const place = await rig.openPlace()
      await place.startOperator(t)
      await place.applyModel('breaks')
      await place.applyModel('yolo')
      await place.ready('models', 'breaks')
      plays.set('breaks', { kind: 'status', status: statusOf({ waiting: PULL }) })
      const broken = await restart(kubeconfig, place, 'model/breaks', '--timeout=8s')
      t.match(broken, {
        code: 1,
        out: /\nModel breaks: 0 of 1 new pod ready, 1 old pod left; ImagePullBackOff: pod "breaks-step-.*": container "main": Back-off pulling/,
        err: /^kubectl tutti restart: not in time: Model breaks: 0 of 1 new pod ready, 1 old pod left; ImagePullBackOff/,
      })
      const generation = async () =>
        (await place.plain.get(place.path('deployments', 'breaks-step')))['metadata'].generation
      const count = await generation()
      await place.applyModel('breaks', { paused: true })
      t.match(await restart(kubeconfig, place, 'breaks'), {
        code: 1,
        err: /model\/breaks is paused/,
      })
      await place.plain.patch(place.path('deployments', 'yolo-step'), { spec: { paused: true } })
      t.match(await restart(kubeconfig, place, 'yolo'), {
        code: 1,
        err: /is paused, .*rollout resume deployment\/yolo-step lets it go on/,
      })
      t.match(await restart(kubeconfig, place, 'yoloo'), {
        code: 1,
        err: /no Ensemble or Model 'yoloo' in namespace .*; did you mean yolo\?/,
      })
      const reader = await server.kubeconfig('reader-token')
      t.match(await restart(reader, place, 'breaks'), { code: 1, err: /cannot list resource/ })
      t.equal(await generation(), count)
    },

    'logs shows the lines of all pods by time, trace goes to the router': async (t: Test) => {
      const place = await rig.openPlace()
      const kubelet = await startKubelet(t, server.plain)
      await place.startOperator(t)
      await place.applyModel('yolo')
      await place.applyModel('other')
      await place.applyEnsemble('ens', 'yolo')
      for (const model of ['yolo', 'other']) await place.ready('models', model)
      await place.ready('ensembles', 'ens')
      const logs = (...args: readonly string[]) =>
        runKubectlTutti(kubeconfig, 'logs', '-n', place.namespace, ...args)
      t.match(await logs('ens'), {
        code: 0,
        out: '',
        err: /^no lines in 2 containers of Ensemble ens/,
      })
      kubelet.write('yolo', '10:00:00.000000001', '{"message":"a","request":"r1"}')
      kubelet.write('tutti-router', '10:00:00.5', '{"message":"b","traceId":"t1"}')
      kubelet.write('yolo', '10:00:01.0', '{"message":"c"}')
      kubelet.write('other', '10:00:00.7', '{"message":"d"}')
      const all = await logs('ens')
      t.match(all, { code: 0, err: '' })
      t.match(
        all.out,
        /^\[pod\/yolo-step-\S+\/main\] \{"message":"a".*\n\[pod\/tutti-router-\S+\/main\] .*"b".*\n.*"c"\}\n$/,
      )
      t.same(kubelet.asked.at(-1), { timestamps: 'true', tailLines: '1000' })
      t.match((await logs('yolo')).out, /^.*"a".*\n.*"c".*\n$/)
      t.match((await logs('ens', '--request', 't1')).out, /^\[pod\/tutti-router-.*"b".*\n$/)
      t.match((await logs('yolo', '--request=r1', '--since=5m')).out, /^\S+ .*"a".*\n$/)
      t.same(kubelet.asked.at(-1), { timestamps: 'true', sinceSeconds: '300' })
      t.match(await logs('ens', '--request=r2'), {
        code: 1,
        out: '',
        err: /^no lines about request 'r2' in 2 containers of Ensemble ens/,
      })
      t.match(await logs('yolo', '-p'), { code: 0, err: /no container that was started again/ })
      t.match(await logs('yolo', '-p', '-f'), { code: 2, err: /--previous: got --follow too/ })

      const follows = spawnKubectlTutti(kubeconfig, 'logs', 'yolo', '-f', '-n', place.namespace)
      t.teardown(() => follows.kill())
      await follows.until(/"c"\}\n$/)
      await kubelet.followed('yolo')
      kubelet.write('yolo', '10:00:02.0', 'later')
      await follows.until(/"c"\}\n\S+ later\n$/)
      // A pod that starts later is followed too, from its first line on.
      kubelet.write('yolo', '10:00:03.0', 'of another pod', { isFirstOfNext: true })
      await restart(kubeconfig, place, 'yolo')
      await follows.until(/ later\n\S+ of another pod\n$/)

      const reader = await server.kubeconfig('reader-token')
      const trace = (as: string) => runKubectlTutti(as, 'trace', 'ens', '-n', place.namespace)
      const lists = [
        { apiGroups: ['tutti.dev'], resources: ['ensembles', 'models'], verbs: ['list'] },
        { apiGroups: [''], resources: ['pods'], verbs: ['list'] },
      ]
      await allowReader(place, lists)
      t.match(await trace(reader), {
        code: 1,
        err: /cannot (get|create) resource "pods\/portforward".*; kubectl tutti trace needs the rights to get and create pods\/portforward in namespace case-/,
      })
      t.same(kubelet.forwards, [])
      const forwards = { apiGroups: [''], resources: ['pods/portforward'] }
      await allowReader(place, [...lists, { ...forwards, verbs: ['get', 'create'] }])
      t.match(await trace(reader), {
        code: 1,
        err: /: the way to pod tutti-router-\S+: port 8001: connection refused\n/,
      })
      t.match(kubelet.forwards, [/^\/portForward\/case-\d+\/tutti-router-/])
      kubelet.breakDown()
      t.match(await logs('other'), {
        code: 1,
        err: /^not shown: pod other-step-\S+, container main: /,
      })
    },

    'explain shows what routers serve, and why a later edit is not served': async (t: Test) => {
      const place = await rig.openPlace()
      const explain = (...args: readonly string[]) =>
        runKubectlTutti(kubeconfig, 'explain', '-n', place.namespace, ...args)
      await place.startOperator(t)
      await place.applyModel('yolo')
      await place.applyEnsemble('ens', 'absent')
      await place.condition('ensembles', 'ens', 'Accepted=False')
      t.match(await explain('ens'), {
        code: 1,
        err: /: Ensemble 'ens' is not served: .*'absent'.* \(\w+\)\n/,
      })
      await place.applyEnsemble('ens', 'yolo')
      await place.ready('ensembles', 'ens')
      const { code, out } = await explain('ens')
      t.equal(code, 0)
      t.match(
        out,
        /^ens: 1 step\n {2}input {2}image FP32 \[-1,3,-1,-1\]\n[^]*\n1\. detect: runs yolo\n[^]*longest chain: detect\n$/,
      )
      const inputMap = { nothing: 'image' }
      await place.applyEnsemble('ens', 'yolo', {
        steps: [{ name: 'detect', modelRef: { name: 'yolo' }, inputMap }],
      })
      await place.condition('ensembles', 'ens', 'Accepted=False')
      const edited = await explain('ensemble/ens')
      t.match(
        edited.out,
        /^routers serve generation \d+; generation \d+ is not accepted:\n {2}\w+: .*'nothing'.*\n\nens: 1 step\n/,
      )
      t.ok(edited.out.endsWith(out))
      const { served, notServed, steps } = JSON.parse((await explain('ens', '-o', 'json')).out)
      t.equal(notServed.generation, served.generation + 1)
      t.match(steps, [{ name: 'detect', model: 'yolo' }])
      t.match(await explain('yolo'), { code: 1, err: /no Ensemble or Model 'ensemble\/yolo'/ })
    },

    'doctor tells what the cluster lacks': async (t: Test) =>
      checkDoctor(t, await rig.openPlace(), {
        admin: kubeconfig,
        reader: await server.kubeconfig('reader-token'),
      }),

    'status shows what a user may read, and says what not': async (t: Test) => {
      const place = await rig.openPlace()
      await place.startOperator(t)
      await place.applyModel('no-image')
      await place.applyEnsemble('ens', 'no-image')
      await place.condition('models', 'no-image', 'Ready=False/ImagePullBackOff')
      const reader = await server.kubeconfig('reader-token')
      const nothing = await statusIn(reader, place)
      t.equal(nothing.code, 1)
      t.match(nothing.out, /not shown: you may not list ensembles \(.*User "reader" cannot list/)
      const lists = (...resources: readonly string[]) =>
        allowReader(place, [{ apiGroups: ['tutti.dev'], resources, verbs: ['list'] }])
      await lists('ensembles')
      t.match(await causesIn(reader, place), {
        code: 1,
        'Ensemble ens': /^NotReady ImagePullBackOff not ready: detect: Model "no-image": pod /,
      })
      await lists('ensembles', 'models', 'routers')
      t.match(await causesIn(reader, place), {
        code: 1,
        'Ensemble ens':
          /ImagePullBackOff not ready: detect: Model "no-image": pod ".*Back-off pulling/,
      })
      t.match((await statusIn(reader, place)).out, /\nnot shown: you may not list pods \(/)
    },
  })
})

function restart(kubeconfig: string, { namespace }: CasePlace, ...args: readonly string[]) {
  return runKubectlTutti(kubeconfig, 'restart', '-n', namespace, ...args)
}

/** Uids of the pods that are not being deleted, by component. */
async function podsIn({ plain, path }: CasePlace): Promise<ReadonlyMap<string, readonly string[]>> {
  const pods = (await plain.list(path('pods'))).filter(
    ({ metadata }) => metadata.deletionTimestamp === undefined,
  )
  const groups = Map.groupBy(pods, ({ metadata }) =>
    String(metadata.labels['app.kubernetes.io/component']),
  )
  return new Map([...groups].map(([of, list]) => [of, list.map(({ metadata }) => metadata.uid)]))
}
