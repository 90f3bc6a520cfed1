import type { PlainObject } from '@tutti/kube/testing'
import type { Test } from 'tap'
import { withoutProvider } from '../cuda-provider.ts'
import { pathOf, type TuttiCluster } from './cluster.ts'

/** As a device plugin would tell, but that the driver of a machine that has GPUs offers none of them. */
const ENV = [
  { name: 'NVIDIA_VISIBLE_DEVICES', value: 'GPU-fake-0' },
  { name: 'CUDA_VISIBLE_DEVICES', value: '-1' },
]
const FOUND =
  /accelerator nvidia\.com\/mig-1g\.5gb=1, NVIDIA_VISIBLE_DEVICES=GPU-fake-0, .*no CUDA driver: libcuda\.so\.1: /s

/** A Model with devices, in a pod that has none that can be used: it serves nothing, least of all from the CPU. */
export async function showAccelerator(
  t: Test,
  { cluster, namespace }: { readonly cluster: TuttiCluster; readonly namespace: string },
): Promise<void> {
  const { plain } = cluster.api
  const model: PlainObject = {
    apiVersion: 'tutti.dev/v1alpha1',
    kind: 'Model',
    metadata: { name: 'accelerated' },
    spec: {
      modelName: 'sum_batch',
      modelFormat: { name: 'onnx' },
      storageUri: 'pvc://models/sum_batch',
      accelerator: { resourceName: 'nvidia.com/mig-1g.5gb' },
      podTemplate: { spec: { containers: [{ name: 'main', env: ENV }] } },
    },
  }
  await cluster.apply(namespace, [model])
  const { status } = await cluster.untilSays(namespace, model, 'Degraded=True/ModelLoadFailed')
  const { message } = status.lastFailure
  t.match(message, 'instance group sum_batch of model sum_batch has kind KIND_GPU but no GPUs are')
  t.match(message, FOUND)
  t.match(message, "want a node with NVIDIA's driver")
  if (withoutProvider !== false) t.match(message, 'want an image like step-cuda')
  const [pod] = await plain.list(
    `/api/v1/namespaces/${namespace}/pods?labelSelector=tutti.dev%2Fmodel%3Daccelerated`,
  )
  const [main] = pod?.['spec'].containers ?? []
  t.same(main?.resources.limits, { 'nvidia.com/mig-1g.5gb': '1' })
  t.ok(main?.args.includes('--accelerator=nvidia.com/mig-1g.5gb=1'))
  await plain.delete(pathOf(namespace, model))
}
