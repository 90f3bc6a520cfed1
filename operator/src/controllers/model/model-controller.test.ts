// needs: apiserver
import { MODEL_CONDITIONS } from '@tutti/api'
import type { PlainObject } from '@tutti/kube/testing'
import { withoutKube } from '@tutti/kube/testing'
import t from 'tap'
import {
  conditionOf,
  deploymentPath,
  isModelReady,
  modelPath,
  openModelCluster,
} from '../../testing/model-cluster.ts'
import {
  COLLECTIONS,
  credentialsOf,
  FETCH_FAILED,
  gatesOf,
  gone,
  revisionsOf,
  settled,
  versionsOf,
} from '../../testing/model-looks.ts'

const skip = withoutKube('kube-controller-manager', 'kube-scheduler')

await t.test('Models on a real API server', { skip }, async (t) => {
  const cluster = await openModelCluster(t)
  const { plain, plays, player } = cluster

  await t.test('a Model gets its children, and is ready once routers serve it', async (t) => {
    const namespace = await cluster.namespace({ hasRouter: false })
    await cluster.applyModel(namespace, 'yolo', { modelName: 'yolo_v8.1' })
    const waiting = await cluster.untilModel(
      namespace,
      'yolo',
      (model) => conditionOf(model, 'Routable') === 'False/NoRouters',
    )
    t.equal(conditionOf(waiting, 'SchemaVerified'), 'True/Discovered')
    t.equal(conditionOf(waiting, 'Ready'), 'False/PodsNotReady')
    t.same(await gatesOf(cluster, namespace), [false])
    await cluster.startRouter(namespace)
    const model = await cluster.untilModel(namespace, 'yolo', isModelReady)
    t.same(await gatesOf(cluster, namespace), [true])
    t.match(model['status'], {
      observedGeneration: 1,
      modelName: 'yolo_v8.1',
      replicas: 1,
      readyReplicas: 1,
      updatedReplicas: 1,
      desiredReplicas: 1,
      selector: 'app.kubernetes.io/component=step,tutti.dev/model=yolo',
      signature: {
        maxBatchSize: 4,
        decoupled: false,
        inputs: [{ name: 'image', datatype: 'FP32', shape: [3, -1, -1] }],
        outputs: [{ name: 'boxes', datatype: 'FP32', shape: [-1, 4] }],
      },
      revisions: [{ version: 1, replicas: 1 }],
    })
    t.same(
      model['status'].conditions.map((condition: PlainObject) => condition['type']),
      [...MODEL_CONDITIONS],
    )
    const [revision, ...others] = await revisionsOf(cluster, namespace)
    t.same(others, [])
    t.match(revision, {
      revision: 1,
      metadata: {
        name: /^yolo-model-[0-9a-f]{10}$/,
        labels: { 'tutti.dev/accepted': 'model', 'tutti.dev/model': 'yolo' },
        ownerReferences: [{ kind: 'Model', name: 'yolo', controller: true }],
      },
      data: { kind: 'Model', modelName: 'yolo_v8.1', versions: [{ version: 1 }] },
    })
    const before = await versionsOf(cluster, namespace)
    cluster.controller.enqueue(`${namespace}/yolo`)
    await settled(cluster)
    t.same(await versionsOf(cluster, namespace), before)
    t.ok(
      cluster.events.some(
        ({ reason, regarding }) => reason === 'Ready' && regarding.metadata.namespace === namespace,
      ),
    )
  })

  await t.test('another configuration is rolled out once routers serve it', async (t) => {
    const namespace = await cluster.namespace()
    await cluster.applyModel(namespace, 'yolo')
    await cluster.untilModel(namespace, 'yolo', isModelReady)
    player.deaf.add(namespace)
    await cluster.applyModel(namespace, 'yolo', { maxBatchSize: 8 })
    const waiting = await cluster.untilModel(
      namespace,
      'yolo',
      // Pods may be heard of before their Deployment is, whose status then still is that of the generation before.
      (model) =>
        conditionOf(model, 'Routable') === 'False/NotRouted' &&
        conditionOf(model, 'Ready') === 'False/RollingOut',
    )
    t.equal(conditionOf(waiting, 'WorkloadAvailable'), 'True/Available')
    t.equal((await revisionsOf(cluster, namespace)).length, 2)
    t.same(new Set(await gatesOf(cluster, namespace)), new Set([false, true]))
    player.deaf.delete(namespace)
    const model = await cluster.untilModel(namespace, 'yolo', isModelReady)
    t.equal(model['status'].signature.maxBatchSize, 8)
    t.equal(model['status'].observedGeneration, 2)
    t.same(
      new Set((await revisionsOf(cluster, namespace)).map((one) => one['revision'])),
      new Set([1, 2]),
    )
  })

  await t.test('a return to what was before is accepted as the newest', async (t) => {
    const namespace = await cluster.namespace()
    for (const [generation, maxBatchSize] of [2, 3, 2].entries()) {
      await cluster.applyModel(namespace, 'yolo', { maxBatchSize })
      await cluster.untilModel(
        namespace,
        'yolo',
        (model) => isModelReady(model) && model['metadata'].generation === generation + 1,
      )
    }
    await settled(cluster)
    const revisions = await revisionsOf(cluster, namespace)
    t.same(
      new Set(revisions.map(({ revision, data }) => `${revision} ${data.config.max_batch_size}`)),
      new Set(['2 3', '3 2']),
    )
  })

  await t.test('what a Model declares wrongly is never let in, and heals', async (t) => {
    const namespace = await cluster.namespace()
    const input = { name: 'image', datatype: 'FP32', shape: [3, -1, -1] }
    await cluster.applyModel(namespace, 'yolo', { inputs: [input] })
    await cluster.untilModel(namespace, 'yolo', isModelReady)
    plays.set('yolo', {
      kind: 'load error',
      text: "Invalid argument: model 'yolo', tensor 'image': the model expects TYPE_FP32",
    })
    await cluster.applyModel(namespace, 'yolo', { inputs: [{ ...input, datatype: 'UINT8' }] })
    const refused = await cluster.untilModel(
      namespace,
      'yolo',
      (model) => conditionOf(model, 'SchemaVerified') === 'False/SchemaMismatch',
    )
    t.match(
      refused['status'].conditions.find((one: PlainObject) => one['type'] === 'SchemaVerified')
        .message,
      /^spec\.inputs\[0\]\(image\): .*expects TYPE_FP32; leave spec\.inputs out/,
    )
    t.match(refused['status'].lastFailure, { reason: 'ModelLoadFailed', container: 'main' })
    t.equal(conditionOf(refused, 'Degraded'), 'True/ModelLoadFailed')
    t.equal(conditionOf(refused, 'WorkloadAvailable'), 'True/Available')
    plays.delete('yolo')
    await cluster.applyModel(namespace, 'yolo', { inputs: [input] })
    const model = await cluster.untilModel(namespace, 'yolo', isModelReady)
    t.equal(conditionOf(model, 'Degraded'), 'False/AsExpected')
    t.equal(model['status'].lastFailure.reason, 'ModelLoadFailed')
  })

  await t.test('a pod that finds no node says what the scheduler says', async (t) => {
    const namespace = await cluster.namespace()
    await cluster.applyModel(namespace, 'yolo', { accelerator: { count: 2 } })
    const model = await cluster.untilModel(
      namespace,
      'yolo',
      (found) => found['status']?.lastFailure?.reason === 'Unschedulable',
    )
    t.match(model['status'].lastFailure.message, /Insufficient nvidia\.com\/gpu/)
    t.equal(conditionOf(model, 'Ready'), 'False/Unschedulable')
    await cluster.applyModel(namespace, 'yolo')
    await cluster.untilModel(namespace, 'yolo', isModelReady)
  })

  await t.test('a fetch that fails says why', async (t) => {
    const namespace = await cluster.namespace()
    plays.set('fetching', { kind: 'status', status: FETCH_FAILED })
    await cluster.applyModel(namespace, 'fetching', { storageUri: 's3://bucket/x' })
    const model = await cluster.untilModel(
      namespace,
      'fetching',
      (found) => conditionOf(found, 'ArtifactsReady') === 'False/FetchFailed',
    )
    t.match(model['status'].lastFailure, {
      reason: 'FetchFailed',
      message: 'digest differs',
      container: 'fetch',
      exitCode: 12,
    })
  })

  await t.test(
    'of two of one name the elder is served, and the other once it is gone',
    async (t) => {
      const namespace = await cluster.namespace()
      await cluster.applyModel(namespace, 'elder', { modelName: 'm' })
      await cluster.untilModel(namespace, 'elder', isModelReady)
      await cluster.applyModel(namespace, 'younger', { modelName: 'm' })
      await cluster.untilModel(
        namespace,
        'younger',
        (model) => conditionOf(model, 'Accepted') === 'False/NameConflict',
      )
      t.equal((await plain.send('GET', deploymentPath(namespace, 'younger'))).status, 404)
      await plain.delete(modelPath(namespace, 'elder'))
      await cluster.untilModel(namespace, 'younger', isModelReady)
    },
  )

  await t.test("an object of somebody else's is left alone until it goes", async (t) => {
    const namespace = await cluster.namespace()
    const foreign = `/api/v1/namespaces/${namespace}/services/yolo-step`
    await plain.create(`/api/v1/namespaces/${namespace}/services`, {
      metadata: { name: 'yolo-step' },
      spec: { ports: [{ port: 80 }] },
    })
    await cluster.applyModel(namespace, 'yolo')
    await cluster.untilModel(
      namespace,
      'yolo',
      (model) => conditionOf(model, 'Degraded') === 'True/ObjectConflict',
    )
    t.same((await plain.get(foreign))['spec'].ports[0].port, 80)
    await plain.delete(foreign)
    await cluster.untilModel(
      namespace,
      'yolo',
      (model) => isModelReady(model) && conditionOf(model, 'Degraded') === 'False/AsExpected',
    )
  })

  await t.test('credentials that are missing are waited for, new ones make new pods', async (t) => {
    const namespace = await cluster.namespace()
    await cluster.applyModel(namespace, 'yolo', {
      storageUri: 's3://bucket/yolo',
      storage: { secretRef: { name: 'aws' } },
    })
    await cluster.untilModel(
      namespace,
      'yolo',
      (model) => conditionOf(model, 'ArtifactsReady') === 'False/SecretNotFound',
    )
    const secret = `/api/v1/namespaces/${namespace}/secrets/aws`
    const write = (values: Record<string, string>) =>
      plain.apply(secret, {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: 'aws', namespace },
        stringData: values,
      })
    await write({ AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 'b' })
    await cluster.untilModel(namespace, 'yolo', isModelReady)
    const digest = async () => credentialsOf(await plain.get(deploymentPath(namespace, 'yolo')))
    const first = await digest()
    await write({ AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 'c' })
    await plain.until(
      deploymentPath(namespace, 'yolo'),
      (found) => credentialsOf(found ?? {}) !== first,
    )
    await cluster.untilModel(
      namespace,
      'yolo',
      (model) => isModelReady(model) && model['status'].updatedReplicas === 1,
    )
    await write({ AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 'c', other: 'x' })
    await settled(cluster)
    const second = await digest()
    t.not(second, first)
  })

  await t.test('replicas make no jump when somebody else decides on them', async (t) => {
    const namespace = await cluster.namespace()
    const path = deploymentPath(namespace, 'yolo')
    const replicas = async () => (await plain.get(path))['spec'].replicas
    await cluster.applyModel(namespace, 'yolo', { scaling: { minReplicas: 3, maxReplicas: 5 } })
    await cluster.untilModel(namespace, 'yolo', isModelReady)
    t.equal(await replicas(), 3)
    const target = { type: 'Utilization', averageUtilization: 80 }
    const metrics = [{ type: 'Resource', resource: { name: 'cpu', target } }]
    await cluster.applyModel(namespace, 'yolo', {
      scaling: { provider: 'HPA', maxReplicas: 6, metrics },
    })
    const autoscaler = `/apis/autoscaling/v2/namespaces/${namespace}/horizontalpodautoscalers/yolo-step`
    await plain.until(autoscaler, (found) => found !== undefined)
    t.equal(await replicas(), 3)
    await plain.patch(`${path}/scale`, { spec: { replicas: 4 } })
    await cluster.applyModel(namespace, 'yolo', {
      maxBatchSize: 2,
      scaling: { provider: 'HPA', maxReplicas: 6, metrics },
    })
    await cluster.untilModel(
      namespace,
      'yolo',
      (model) => isModelReady(model) && model['status'].desiredReplicas === 4,
    )
    await cluster.applyModel(namespace, 'yolo', { scaling: { provider: 'None', replicas: 4 } })
    await plain.until(autoscaler, (found) => found === undefined)
    t.equal(await replicas(), 4)
    await cluster.applyModel(namespace, 'yolo', { scaling: { minReplicas: 2, maxReplicas: 4 } })
    const model = await cluster.untilModel(namespace, 'yolo', isModelReady)
    t.equal(model['status'].desiredReplicas, 4)
    await cluster.applyModel(namespace, 'yolo', { scaling: { provider: 'None', replicas: 1 } })
    await cluster.untilModel(
      namespace,
      'yolo',
      (found) => isModelReady(found) && found['status'].replicas === 1,
    )
    await plain.patch(`${modelPath(namespace, 'yolo')}/scale`, { spec: { replicas: 2 } })
    await cluster.untilModel(
      namespace,
      'yolo',
      (found) => isModelReady(found) && found['status'].readyReplicas === 2,
    )
  })

  await t.test('the provider Native follows requests in flight and queued', async (t) => {
    const namespace = await cluster.namespace()
    cluster.load = { inFlight: 1, queued: 2, slots: 1, requests: 0 }
    await cluster.applyModel(namespace, 'yolo', {
      scaling: {
        maxReplicas: 3,
        behavior: { scaleDown: { stabilizationWindowSeconds: 0 } },
      },
    })
    const model = await cluster.untilModel(
      namespace,
      'yolo',
      (found) => found['status']?.readyReplicas === 3,
    )
    t.equal(model['status'].desiredReplicas, 3)
    cluster.load = { inFlight: 0, queued: 0, slots: 1, requests: 0 }
    await cluster.untilModel(namespace, 'yolo', (found) => found['status']?.replicas === 1)
  })

  await t.test('a child that is deleted or changed by hand is as before again', async (t) => {
    const namespace = await cluster.namespace()
    await cluster.applyModel(namespace, 'yolo')
    await cluster.untilModel(namespace, 'yolo', isModelReady)
    const service = `/api/v1/namespaces/${namespace}/services/yolo-step`
    const { uid } = (await plain.get(service))['metadata']
    await plain.delete(service)
    await plain.until(service, (found) => found !== undefined && found['metadata'].uid !== uid)
    const path = deploymentPath(namespace, 'yolo')
    await plain.patch(path, { spec: { replicas: 5 } })
    await plain.until(path, (found) => found?.['spec'].replicas === 1)
    await settled(cluster)
    t.ok(
      cluster.events.some(
        ({ reason, regarding }) =>
          reason === 'ChildRepaired' && regarding.metadata.namespace === namespace,
      ),
    )
  })

  await t.test('what is paused stays as it is', async (t) => {
    const namespace = await cluster.namespace()
    await cluster.applyModel(namespace, 'yolo')
    await cluster.untilModel(namespace, 'yolo', isModelReady)
    const { generation } = (await plain.get(deploymentPath(namespace, 'yolo')))['metadata']
    await cluster.applyModel(namespace, 'yolo', { paused: true, maxBatchSize: 2 })
    const model = await cluster.untilModel(
      namespace,
      'yolo',
      (found) => conditionOf(found, 'Progressing') === 'False/Paused',
    )
    t.equal(conditionOf(model, 'Ready'), 'False/Paused')
    t.equal(conditionOf(model, 'Routable'), 'True/Routed', 'by the pods that there are')
    t.equal((await plain.get(deploymentPath(namespace, 'yolo')))['metadata'].generation, generation)
    await cluster.applyModel(namespace, 'yolo', { maxBatchSize: 2 })
    await cluster.untilModel(namespace, 'yolo', isModelReady)
  })

  await t.test('A changed to B is as B made anew', async (t) => {
    const specs = await Promise.all(
      [[{ maxBatchSize: 2, accelerator: { nodeSelector: { a: 'b' } } }, {}], [{}]].map(
        async (steps) => {
          const namespace = await cluster.namespace()
          for (const spec of steps) {
            const { metadata } = await cluster.applyModel(namespace, 'yolo', {
              ...spec,
              scaling: { maxReplicas: 2 },
            })
            await cluster.untilModel(
              namespace,
              'yolo',
              (model) => model['status']?.observedGeneration === metadata.generation,
            )
          }
          await cluster.untilModel(namespace, 'yolo', isModelReady)
          const { spec } = await plain.get(deploymentPath(namespace, 'yolo'))
          // The namespace is in the arguments, and so in the digest.
          delete spec.template.metadata.annotations['tutti.dev/template']
          return JSON.parse(JSON.stringify(spec).replaceAll(namespace, 'NS'))
        },
      ),
    )
    t.same(specs[0], specs[1])
  })

  await t.test('with a Model go its children, also those that are just being made', async () => {
    const namespace = await cluster.namespace()
    await cluster.applyModel(namespace, 'yolo')
    await cluster.untilModel(namespace, 'yolo', isModelReady)
    await plain.delete(modelPath(namespace, 'yolo'))
    for (let n = 0; n < 10; n++) {
      await cluster.applyModel(namespace, `brief-${n}`)
      await plain.delete(modelPath(namespace, `brief-${n}`))
    }
    await settled(cluster)
    for (const path of COLLECTIONS) await gone(cluster, path(namespace))
  })
})
