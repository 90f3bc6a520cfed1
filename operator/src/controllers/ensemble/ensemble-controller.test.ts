// needs: apiserver
import { type ApiServer, type PlainObject, startApiServer, withoutKube } from '@tutti/kube/testing'
import t from 'tap'
import { openEnsembleRig } from '../../testing/ensemble-rig.ts'
import { installCrds } from '../../testing/prepare-server.ts'

const IO = `
  backend: "onnxruntime" max_batch_size: 8
  input { name: "X" data_type: TYPE_FP32 dims: 4 }
  output { name: "Y" data_type: TYPE_FP32 dims: 4 }`

const tensor = (name: string) => ({ name, datatype: 'FP32', shape: [4] })

/** One step over a model. */
const over = (model: string, o: object = {}) => ({
  maxBatchSize: 8,
  inputs: [tensor('X')],
  outputs: [{ name: 'Y', from: 'a.Y' }],
  steps: [{ name: 'a', modelRef: { name: model }, inputMap: { X: 'X' } }],
  ...o,
})

const MANY = 150

const servedNames = (names: readonly string[]) => ({ models: [], accepted: names })

async function begin(): Promise<ApiServer> {
  const server = await startApiServer()
  await installCrds(server)
  return server
}

await t.test('against a real API server', { skip: withoutKube() }, async (t) => {
  const server = await begin()
  t.teardown(() => server.stop())
  const { plain } = server

  await t.test(
    'applied before its Model, an Ensemble waits, is accepted, and is Ready once all routers serve it',
    async (t) => {
      const rig = await openEnsembleRig(t, server)
      await rig.start()
      const ns = await rig.createNamespace()
      await ns.applyEnsemble('ens', over('m'))
      await ns.condition('ens', 'Accepted', 'False', 'SchemaPending')
      await ns.serveModel('m', IO)
      const accepted = await ns.condition('ens', 'Accepted', 'True')
      t.match(accepted, { stepsReady: '1/1', steps: [{ name: 'a', model: 'm', ready: true }] })
      const { revision } = accepted as { revision: string }
      await ns.condition('ens', 'RouterReady', 'False', 'NoRouters')
      const one = await ns.startRouter('r1')
      one.answer('/tutti/v1/served', servedNames([revision]))
      await ns.condition('ens', 'Ready', 'True')
      const other = await ns.startRouter('r2')
      other.answer('/tutti/v1/served', servedNames([]))
      await ns.condition('ens', 'Routable', 'False', 'NotRouted')
      other.answer('/tutti/v1/served', servedNames([revision]))
      const ready = await ns.condition('ens', 'Ready', 'True')
      t.match(ready, {
        modelName: 'ens',
        url: `http://tutti-router-http.${ns.name}.svc:8000`,
        grpcUrl: `tutti-router-grpc.${ns.name}.svc:8001`,
        signature: { inputs: [{ name: 'X' }], outputs: [{ name: 'Y' }] },
        observedGeneration: 1,
      })
      for (const condition of (ready as { conditions: { observedGeneration: number }[] })
        .conditions) {
        t.equal(condition.observedGeneration, 1)
      }
    },
  )

  await t.test(
    'an edit that is not accepted never goes live, and the one before goes on',
    async (t) => {
      const rig = await openEnsembleRig(t, server)
      await rig.start()
      const ns = await rig.createNamespace()
      await ns.serveModel('m', IO)
      await ns.applyEnsemble('ens', over('m'))
      const { revision: first } = (await ns.condition('ens', 'Accepted', 'True')) as {
        revision: string
      }
      const router = await ns.startRouter('r1')
      router.answer('/tutti/v1/served', servedNames([first]))
      await ns.condition('ens', 'Ready', 'True')
      await ns.applyEnsemble('ens', over('m', { inputs: [{ ...tensor('X'), datatype: 'INT32' }] }))
      const refused = await ns.condition('ens', 'Accepted', 'False', 'DatatypeMismatch')
      t.equal(refused['revision'], first)
      await ns.condition('ens', 'Degraded', 'True', 'EarlierGenerationServed')
      await ns.condition('ens', 'Ready', 'False', 'DatatypeMismatch')
      const revisions = await plain.list(
        `${ns.path('controllerrevisions')}?labelSelector=tutti.dev/ensemble=ens`,
      )
      t.equal(revisions.length, 1)
      await ns.applyEnsemble('ens', over('m', { paused: true }))
      await ns.condition('ens', 'Accepted', 'Unknown', 'Paused')
      t.equal((await ns.condition('ens', 'Ready', 'True', 'Paused'))['revision'], first)
      await ns.applyEnsemble('ens', over('m', { timeout: '5s' }))
      const { revision: second } = (await ns.condition('ens', 'Accepted', 'True')) as {
        revision: string
      }
      t.not(second, first)
      await ns.condition('ens', 'Routable', 'False', 'NotRouted')
      router.answer('/tutti/v1/served', servedNames([second]))
      await ns.condition('ens', 'Ready', 'True')
    },
  )

  await t.test('Ensembles follow their Models, nested ones too', async (t) => {
    const rig = await openEnsembleRig(t, server)
    await rig.start()
    const ns = await rig.createNamespace()
    await ns.applyEnsemble('outer', {
      ...over('inner'),
      steps: [{ name: 'a', ensembleRef: { name: 'inner' }, inputMap: { X: 'X' } }],
    })
    await ns.applyEnsemble('inner', over('m'))
    await ns.condition('outer', 'Accepted', 'False', 'SchemaPending')
    await ns.serveModel('m', IO)
    await ns.condition('inner', 'Accepted', 'True')
    await ns.condition('outer', 'Accepted', 'True')
    await ns.serveModel('m', IO.replace('TYPE_FP32', 'TYPE_INT32'))
    await ns.condition('inner', 'Accepted', 'False', 'DatatypeMismatch')
    await ns.serveModel('m', IO)
    await ns.condition('inner', 'Accepted', 'True')
  })

  await t.test(
    'a step that has the name of a resource is told the served one, whatever comes first',
    async (t) => {
      const rig = await openEnsembleRig(t, server)
      await rig.start()
      const ns = await rig.createNamespace()
      const messageOf = (type: string, text: string) =>
        plain.until(ns.path('ensembles', 'ens'), (object) =>
          (object?.['status']?.conditions ?? []).some(
            (one: PlainObject) => one['type'] === type && one['message'].endsWith(text),
          ),
        )
      const path = ns.path('models', 'the-model')
      await ns.applyEnsemble('ens', over('the-model'))
      await messageOf('Accepted', "serves 'the-model' yet; want one of that served name")
      await plain.apply(path, {
        apiVersion: 'tutti.dev/v1alpha1',
        kind: 'Model',
        metadata: { name: 'the-model' },
        spec: { modelName: 'M.1', modelFormat: { name: 'onnx' }, storageUri: 'pvc://models/x' },
      })
      for (const type of ['Accepted', 'StepsReady']) {
        await messageOf(type, "yet; Model 'the-model' is served as 'M.1'")
      }
      await plain.delete(path)
      await messageOf('StepsReady', 'want one of that served name')
      t.pass('it is forgotten with the resource')
    },
  )

  await t.test(
    'Ensembles that contain each other, and names that are taken, are refused',
    async (t) => {
      const rig = await openEnsembleRig(t, server)
      await rig.start()
      const ns = await rig.createNamespace()
      const nested = (name: string) => ({
        ...over(name),
        steps: [{ name: 'a', ensembleRef: { name }, inputMap: { X: 'X' } }],
      })
      await ns.applyEnsemble('one', nested('two'))
      await ns.applyEnsemble('two', nested('one'))
      await ns.condition('one', 'Accepted', 'False', 'CycleDetected')
      await ns.condition('two', 'Accepted', 'False', 'CycleDetected')
      await ns.serveModel('m', IO)
      await ns.applyEnsemble('self', over('self'))
      await ns.condition('self', 'Accepted', 'False', 'CycleDetected')
      await ns.applyEnsemble('first', over('m', { modelName: 'shared' }))
      await ns.condition('first', 'Accepted', 'True')
      await ns.applyEnsemble('second', over('m', { modelName: 'shared' }))
      await ns.condition('second', 'Accepted', 'False', 'NameConflict')
      await plain.delete(ns.path('ensembles', 'first'))
      await ns.condition('second', 'Accepted', 'True')
    },
  )

  await t.test(
    'what is served of an Ensemble counts for cycles, whatever it is edited to meanwhile',
    async (t) => {
      const rig = await openEnsembleRig(t, server)
      await rig.start()
      const ns = await rig.createNamespace()
      const nested = (name: string) => ({
        ...over(name),
        steps: [{ name: 'a', ensembleRef: { name }, inputMap: { X: 'X' } }],
      })
      await ns.serveModel('m', IO)
      await ns.applyEnsemble('inner', over('m'))
      await ns.applyEnsemble('outer', nested('inner'))
      await ns.condition('outer', 'Accepted', 'True')
      // Neither edit goes live: routers go on with `outer` over `inner`.
      for (const edit of [over('missing'), over('m', { paused: true })]) {
        await ns.applyEnsemble('outer', edit)
        await ns.condition('outer', 'Accepted', 'paused' in edit ? 'Unknown' : 'False')
        await ns.applyEnsemble('inner', nested('outer'))
        await ns.condition('inner', 'Accepted', 'False', 'CycleDetected')
      }
      await ns.applyEnsemble('outer', over('m'))
      await ns.condition('outer', 'Accepted', 'True')
      await ns.condition('inner', 'Accepted', 'True')
    },
  )

  await t.test(
    '27: many Ensembles on one Model follow it, and what a user changes does not wait for them',
    async (t) => {
      const rig = await openEnsembleRig(t, server)
      await rig.start()
      const ns = await rig.createNamespace()
      const names = Array.from({ length: MANY }, (_, i) => `many-${i}`)
      for (let i = 0; i < names.length; i += 20) {
        await Promise.all(names.slice(i, i + 20).map((name) => ns.applyEnsemble(name, over('m'))))
      }
      await ns.serveModel('m', IO)
      // While the others are worked on.
      await ns.serveModel('other', IO)
      await ns.applyEnsemble('mine', over('other'))
      await ns.condition('mine', 'Accepted', 'True')
      for (const name of names) await ns.condition(name, 'Accepted', 'True')
      const revisions = await plain.list(
        `${ns.path('controllerrevisions')}?labelSelector=tutti.dev/accepted=ensemble`,
      )
      t.equal(revisions.length, MANY + 1)
    },
  )
})
