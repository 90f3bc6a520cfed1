// needs: apiserver
import { withoutKube } from '@tutti/kube/testing'
import t from 'tap'
import {
  conditionOf,
  deploymentPath,
  isModelReady,
  openModelCluster,
} from '../../testing/model-cluster.ts'
import { credentialsOf, settled } from '../../testing/model-looks.ts'

const skip = withoutKube('kube-controller-manager', 'kube-scheduler')

await t.test(
  'credentials that are missing are waited for, new ones make new pods',
  { skip },
  async (t) => {
    const cluster = await openModelCluster(t)
    const { plain } = cluster
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
    // As the release before wrote it for these credentials.
    const earlier = 'd9c08232f0d856e1e0083446dc507111'
    const annotations = { 'tutti.dev/credentials': earlier }
    await plain.patch(deploymentPath(namespace, 'yolo'), {
      spec: { template: { metadata: { annotations } } },
    })
    await settled(cluster)
    t.equal(await digest(), earlier, 'pods of that release are not replaced')
    await write({ AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 'd', other: 'x' })
    await plain.until(
      deploymentPath(namespace, 'yolo'),
      (found) => ![earlier, second].includes(credentialsOf(found ?? {})),
    )
  },
)
