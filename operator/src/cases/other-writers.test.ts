// needs: apiserver
import { type PlainObject, withoutKube } from '@tutti/kube/testing'
import t, { type Test } from 'tap'
import { type CasePlace, MADE_KINDS, openCaseRig } from '../testing/case-rig.ts'
import { hasCondition, isThere } from '../testing/namespaced.ts'
import { sideBySide } from '../testing/side-by-side.ts'

const skip = withoutKube('kube-controller-manager', 'kube-scheduler')
const OURS = '?labelSelector=app.kubernetes.io%2Fmanaged-by%3Dtutti-operator'

async function changeDeployment(place: CasePlace, name: string, body: PlainObject): Promise<void> {
  const contentType = 'application/strategic-merge-patch+json'
  const path = `${place.path('deployments', name)}?fieldManager=kubectl-edit`
  const { status, body: answer } = await place.plain.send('PATCH', path, { body, contentType })
  if (status !== 200) throw new Error(`${path}: ${status} ${JSON.stringify(answer)}`)
}

/** Since when it is accepted. */
function accepted(conditions: PlainObject[]): string {
  return conditions.find(({ type }) => type === 'Accepted')?.['lastTransitionTime']
}

await t.test('others write beside the operator', { skip }, async (t) => {
  const rig = await openCaseRig(t)
  const begin = async (t: Test, spec: PlainObject = {}) => {
    const place = await rig.openPlace()
    const operator = await place.startOperator(t)
    await place.applyModel('yolo', spec)
    await place.applyEnsemble('ens', 'yolo')
    await place.ready('models', 'yolo')
    await place.ready('ensembles', 'ens')
    await operator.atRest()
    const writes = () => operator.proxy.writes.length
    const written = (from: number) =>
      operator.proxy.writes.slice(from).map(({ method, path, body }) => `${method} ${path} ${body}`)
    return { place, operator, writes, written }
  }
  await sideBySide(t, {
    'case 11: a field of ours is changed by hand': async (t: Test) => {
      const { place, operator, writes } = await begin(t)
      const before = await place.look()
      const { events, metrics } = operator
      const series = 'controller_runtime_reconcile_total{controller="model",result="error"}'
      const failures = async () => (await metrics.read(series)) ?? 0
      const path = place.path('deployments', 'yolo-step')
      for (const times of [1, 2]) {
        const count = writes()
        const failed = await failures()
        if (times === 2) {
          // The pass that puts it right fails, and the next one finds nothing to do.
          const fault = { type: 'answer', status: 500 } as const
          operator.proxy.addRule({ path: /models\/yolo\/status/, isWrite: true, times: 1, fault })
        }
        await changeDeployment(place, 'yolo-step', {
          spec: {
            template: { spec: { containers: [{ name: 'main', image: 'others.example/x' }] } },
          },
        })
        await place.plain.until(
          path,
          (found) => found?.['spec'].template.spec.containers[0].image !== 'others.example/x',
        )
        await operator.atRest()
        await place.ready('models', 'yolo')
        await operator.atRest()
        t.same(await place.look(), before)
        const repairs = events.filter(({ reason }) => reason === 'ChildRepaired')
        t.equal(repairs.length, times, 'one event each')
        t.equal(await failures(), failed + times - 1)
        const applies = operator.proxy.writes
          .slice(count)
          .filter(({ path: written }) => written === path)
        t.equal(applies.length, 1, 'one apply each')
      }
      await changeDeployment(place, 'tutti-router', { spec: { replicas: 3 } })
      await place.plain.until(
        place.path('deployments', 'tutti-router'),
        (found) => found?.['spec'].replicas === 1,
      )
      await operator.atRest()
      t.same(await place.look(), before)
    },

    'case 12: what others add is left': async (t: Test) => {
      const { place, operator, writes } = await begin(t)
      const added = {
        metadata: {
          labels: { 'others.example/team': 'a' },
          annotations: { 'others.example/x': 'y' },
        },
        spec: {
          template: {
            metadata: { annotations: { 'others.example/injected': 'true' } },
            spec: {
              containers: [
                { name: 'main', env: [{ name: 'OTHERS', value: '1' }] },
                { name: 'proxy', image: 'others.example/proxy' },
              ],
            },
          },
        },
      }
      for (const name of ['yolo-step', 'tutti-router']) await changeDeployment(place, name, added)
      await operator.atRest()
      const count = writes()
      await place.applyModel('yolo', { maxBatchSize: 2 })
      await place.ready('models', 'yolo')
      await operator.atRest()
      t.ok(writes() - count < 20, 'it comes to rest')
      for (const name of ['yolo-step', 'tutti-router']) {
        t.match(await place.plain.get(place.path('deployments', name)), added, name)
      }
    },

    'a finalizer of somebody holds a Deployment that is being deleted': async (t: Test) => {
      const { place, operator } = await begin(t)
      const path = place.path('deployments', 'yolo-step')
      await place.plain.patch(path, { metadata: { finalizers: ['example.com/stay'] } })
      await place.plain.delete(path)
      const { status } = await place.condition('models', 'yolo', 'Degraded=True/Terminating')
      const { message } = status.conditions.find(({ type }: PlainObject) => type === 'Degraded')
      t.match(message, 'Deployment "yolo-step": is being deleted and held by "example.com/stay"')
      await place.condition('models', 'yolo', 'Progressing=False/Terminating')
      await place.plain.patch(path, { metadata: { finalizers: null } })
      await place.condition('models', 'yolo', 'Degraded=False')
      await place.ready('models', 'yolo')
      await operator.atRest()
    },

    'case 13: edits while an HPA has scaled': async (t: Test) => {
      const range = { minReplicas: 1, maxReplicas: 5 }
      const target = { type: 'Utilization', averageUtilization: 80 }
      const metrics = [{ type: 'Resource', resource: { name: 'cpu', target } }]
      const scaling = { ...range, provider: 'HPA', metrics }
      const { place, operator } = await begin(t, { scaling })
      const path = place.path('deployments', 'yolo-step')
      const replicas = async () => (await place.plain.get(path))['spec'].replicas as number
      await place.plain.patch(`${path}/scale`, { spec: { replicas: 3 } })
      await place.applyModel('yolo', { scaling, maxBatchSize: 2 })
      await place.ready('models', 'yolo')
      await operator.atRest()
      t.equal(await replicas(), 3, 'an edit')
      await place.applyModel('yolo', { scaling: { ...range, provider: 'Native' } })
      await place.ready('models', 'yolo')
      t.equal(await replicas(), 3, 'taken over')
      await place.applyModel('yolo', { scaling })
      await place.ready('models', 'yolo')
      await operator.atRest()
      t.equal(await replicas(), 3, 'given back')
    },

    'case 13: an HPA at the Deployment of a Model, and of the router': async (t: Test) => {
      const { place, operator, writes } = await begin(t)
      for (const [plural, owner, name, want] of [
        [
          'models',
          'yolo',
          'yolo-step',
          /want scaling\.provider None and the Model "yolo" as its target; else delete/,
        ],
        [
          'routers',
          'default',
          'tutti-router',
          /want scaling\.replicas of the Router "default" set and the Router as its target; else/,
        ],
      ] as const) {
        const path = place.path('deployments', name)
        const hpas = `/apis/autoscaling/v2/namespaces/${place.namespace}/horizontalpodautoscalers`
        await place.plain.create(hpas, {
          metadata: { name: 'theirs' },
          spec: {
            scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name },
            // Fewer than these are there, so it needs no metrics to write.
            minReplicas: 3,
            maxReplicas: 5,
          },
        })
        const { status } = await place.condition(plural, owner, 'Degraded=True/ReplicasNotOwned')
        const told = status.conditions.find(({ type }: PlainObject) => type === 'Degraded').message
        t.match(told, /^HorizontalPodAutoscaler "theirs" writes the replicas of Deployment "/)
        t.match(told, want)
        await place.plain.until(path, (found) => found?.['status']?.readyReplicas === 3)
        await place.ready(plural, owner)
        await operator.atRest()
        const [count, { metadata }] = [writes(), await place.plain.get(path)]
        await place.plain.patch(`${path}/scale`, { spec: { replicas: 4 } })
        await place.plain.until(path, (found) => found?.['status']?.readyReplicas === 4)
        await operator.atRest()
        const after = await place.plain.get(path)
        t.equal(after['metadata'].generation, metadata.generation + 1, 'nobody fights')
        t.equal(after['spec'].replicas, 4)
        t.ok(writes() - count < 20, 'it comes to rest')
        await place.plain.delete(`${hpas}/theirs`)
        // An edit is quicker than the next look.
        await place.plain.patch(place.path(plural, owner), {
          metadata: { annotations: { a: 'b' } },
        })
        await place.condition(plural, owner, 'Degraded=False')
        await place.plain.until(path, (found) => found?.['spec'].replicas === 1)
      }
      await operator.atRest()
    },

    'case 13: whoever else writes replicas again and again gets its way, and is named': async (
      t: Test,
    ) => {
      const { place, operator } = await begin(t)
      const path = place.path('deployments', 'yolo-step')
      const scale = (replicas: number) =>
        place.plain.send('PATCH', `${path}/scale?fieldManager=scaler`, {
          body: { spec: { replicas } },
        })
      const wanted = 'Degraded=True/ReplicasNotOwned'
      const model = () => place.plain.get(place.path('models', 'yolo'))
      await scale(3)
      await place.plain.until(path, (found) => found?.['spec'].replicas === 1)
      // On a busy machine so much time passes that it is taken back once more.
      while (!hasCondition(await model(), wanted)) {
        await scale(3)
        await operator.atRest()
      }
      const { conditions } = (await model())['status']
      const told = conditions.find(({ type }: PlainObject) => type === 'Degraded').message
      t.match(
        told,
        /^the field manager "scaler" writes the replicas of Deployment "yolo-step", 3 now/,
      )
      await place.applyModel('yolo', { scaling: { provider: 'None', replicas: 3 } })
      await place.condition('models', 'yolo', 'Degraded=False')
      await place.ready('models', 'yolo')
      t.equal((await place.plain.get(path))['spec'].replicas, 3, 'they agree')
    },

    'case 13: an HPA at the Model': async (t: Test) => {
      const { place, operator } = await begin(t)
      const path = place.path('models', 'yolo')
      const deployment = place.path('deployments', 'yolo-step')
      const hpas = `/apis/autoscaling/v2/namespaces/${place.namespace}/horizontalpodautoscalers`
      const hpa = await place.plain.create(hpas, {
        metadata: { name: 'mine' },
        spec: {
          scaleTargetRef: { apiVersion: 'tutti.dev/v1alpha1', kind: 'Model', name: 'yolo' },
          minReplicas: 2,
          maxReplicas: 5,
        },
      })
      // The HPA of a Model that decides itself is told so, in the server's words.
      const refused = await place.plain.until(`${hpas}/mine`, (found) =>
        JSON.stringify(found?.['status'] ?? {}).includes('which decides on replicas itself'),
      )
      t.match(refused, { status: { conditions: [{ type: 'AbleToScale', status: 'False' }] } })
      await place.applyModel('yolo', { scaling: { provider: 'None' } })
      await place.plain.until(deployment, (found) => found?.['status']?.readyReplicas === 2)
      const model = await place.ready('models', 'yolo')
      t.equal(model['spec'].scaling.replicas, 2)
      await operator.atRest()
      // The manifest says nothing of the number, so applying it again leaves it.
      await place.applyModel('yolo', { scaling: { provider: 'None' }, maxBatchSize: 2 })
      await place.ready('models', 'yolo')
      t.match(await place.plain.get(`${path}/scale`), {
        spec: { replicas: 2 },
        status: { replicas: 2, selector: 'app.kubernetes.io/component=step,tutti.dev/model=yolo' },
      })
      t.equal(hpa['spec'].minReplicas, 2)
    },

    'case 12: a user removes labels or the owner of a ControllerRevision': async (t: Test) => {
      const { place, operator } = await begin(t)
      const before = await place.look()
      for (const [kind, plural, name, wanted] of [
        ['model', 'models', 'yolo', 'Degraded=True/ApplyFailed'],
        ['ensemble', 'ensembles', 'ens', 'Accepted=False/RevisionRefused'],
      ] as const) {
        const selector = `tutti.dev%2Faccepted%3D${kind}`
        const [found] = await place.plain.list(
          `${place.path('controllerrevisions')}?labelSelector=${selector}`,
        )
        const path = place.path('controllerrevisions', found?.['metadata'].name)
        await place.plain.patch(path, {
          metadata: { labels: { 'app.kubernetes.io/managed-by': null } },
        })
        const object = await place.condition(plural, name, wanted)
        t.match(JSON.stringify(object['status'].conditions), /already exists, .*: delete it/)
        await place.plain.delete(path)
        // An edit is quicker than the next try.
        await place.plain.patch(place.path(plural, name), { metadata: { annotations: { a: 'b' } } })
        await place.ready(plural, name)
        await place.plain.patch(place.path(plural, name), { metadata: { annotations: null } })
      }
      await operator.atRest()
      t.same(await place.look(), before)
    },

    'case 11: a Deployment is paused by hand': async (t: Test) => {
      const { place, operator } = await begin(t)
      await changeDeployment(place, 'yolo-step', { spec: { paused: true } })
      await place.applyModel('yolo', { maxBatchSize: 2 })
      const { status } = await place.condition('models', 'yolo', 'Ready=False/DeploymentPaused')
      const said = status.conditions.find(({ type }: PlainObject) => type === 'Progressing')
      t.match(said.message, /kubectl rollout resume deployment\/yolo-step -n case-/)
      await operator.atRest()
      await changeDeployment(place, 'yolo-step', { spec: { paused: null } })
      await place.ready('models', 'yolo')
    },

    'case 19: each kind of child is deleted by hand': async (t: Test) => {
      const { place, operator } = await begin(t, { disruptionBudget: { minAvailable: 1 } })
      const before = await place.look()
      for (const plural of MADE_KINDS) {
        const count = operator.proxy.writes.length
        const found = await place.plain.list(`${place.path(plural)}${OURS}`)
        for (const { metadata } of found) {
          const path = place.path(plural, metadata.name)
          await place.plain.delete(path)
          await place.plain.until(
            path,
            (now) => isThere(now) && now?.['metadata'].uid !== metadata.uid,
          )
        }
        await place.ready('models', 'yolo')
        await place.ready('ensembles', 'ens')
        await operator.atRest()
        const made = operator.proxy.writes
          .slice(count)
          .filter(({ status, path }) => status === 201 && path.includes(`/${plural}`))
        t.equal(made.length, found.length, `${plural}: each is made once`)
      }
      t.same(await place.look(), before)
    },

    'case 20: the owner of a child is taken away, or another': async (t: Test) => {
      const { place, operator, writes, written } = await begin(t)
      const path = place.path('services', 'yolo-step')
      const name = 'somebody'
      const { metadata: other } = await place.plain.create(place.path('configmaps'), {
        metadata: { name },
      })
      const owner = { apiVersion: 'v1', kind: 'ConfigMap', name, uid: other.uid, controller: true }
      for (const owners of [[], [owner]]) {
        await place.plain.patch(path, { metadata: { ownerReferences: owners } })
        await place.condition('models', 'yolo', 'Degraded=True/ObjectConflict')
        await operator.atRest()
        const count = writes()
        await operator.atRest()
        const { metadata } = await place.plain.get(path)
        t.same(metadata.ownerReferences ?? [], owners, 'it is left alone')
        const { status } = await place.plain.get(place.path('models', 'yolo'))
        const degraded = status.conditions.find(({ type }: PlainObject) => type === 'Degraded')
        t.match(degraded, { status: 'True', message: /yolo-step/ })
        // The status of the Model may change meanwhile: a busy machine makes pods and nodes late.
        const fought = written(count).filter((line) => !line.includes('/status '))
        t.same(fought, [], 'no two writers fight')
      }
      await place.plain.delete(path)
      await place.condition('models', 'yolo', 'Degraded=False')
    },

    'case 28: what the server writes differently': async (t: Test) => {
      const { operator, writes, written } = await begin(t, {
        resources: { requests: { cpu: '1000m', memory: '1024Mi' }, limits: { cpu: '2.0' } },
        rollout: { maxSurge: '50%', maxUnavailable: 0 },
        podTemplate: { spec: { tolerations: [], containers: [{ name: 'main', env: [] }] } },
      })
      const count = writes()
      const applied = () => operator.metrics.read('apply_total{kind="Deployment",result="applied"}')
      const before = await applied()
      await operator.atRest()
      t.same(written(count), [])
      t.equal(await applied(), before)
    },

    'case 32: two hundred quick edits': async (t: Test) => {
      const { place, operator } = await begin(t)
      const path = place.path('models', 'yolo')
      // One that meets an edit is refused, and sent again.
      const isStatus = (write: { readonly path: string; readonly status?: number }) =>
        write.path === `${path}/status` && write.status !== 409
      const statuses = (from: number, to?: number) =>
        operator.proxy.writes.slice(from, to).filter(isStatus).length
      const [before, passesBefore] = [operator.proxy.writes.length, operator.passes.length]
      const { status: first } = await place.plain.get(path)
      const edit = (second: number) =>
        place.plain.patch(path, { spec: { timeouts: { drain: `${second}s` } } })
      for (let second = 1; second <= 100; second++) await edit(second)
      // As many again while one pass goes on: they are one more.
      const edited = Promise.withResolvers<void>()
      const held = Promise.withResolvers<void>()
      const when = (): boolean => {
        held.resolve()
        return true
      }
      const fault = { type: 'wait', until: edited.promise } as const
      operator.proxy.addRule({ path: /models\/yolo\/status$/, when, times: 1, fault })
      await edit(101)
      await held.promise
      const heldFrom = operator.proxy.writes.length
      for (let second = 102; second <= 200; second++) await edit(second)
      edited.resolve()
      const { metadata, status } = await place.ready('models', 'yolo')
      await operator.atRest()
      t.equal(status.observedGeneration, metadata.generation)
      t.equal(metadata.generation, 201)
      t.equal(accepted(status.conditions), accepted(first.conditions), 'it was true all the time')
      t.ok(statuses(before) > 0)
      t.ok(statuses(heldFrom) < 20, `${statuses(heldFrom)} status writes for 99 edits`)
      // There is one Model, and it is never in two passes at a time.
      let from = before
      for (const { controller, writes } of operator.passes.slice(passesBefore)) {
        if (controller !== 'model') continue
        t.ok(statuses(from, writes) <= 1, 'one status write a pass')
        from = writes
      }
    },
  })
})
