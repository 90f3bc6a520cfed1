import { ModelSpec, type ServedModel } from '@tutti/api'
import type { Deployment, Pod, PodStatus, Stored } from '@tutti/kube'
import { parseModelConfig } from '@tutti/model-config'
import type { ModelObject } from '../api/kinds.ts'
import type { ModelPod } from '../controllers/model/model-pods.ts'
import type { ModelWorld } from '../controllers/model/model-world.ts'
import { toScaling } from '../resources/model-scaling.ts'
import { stepSelector } from '../resources/step-labels.ts'
import { storedObject } from './stored-object.ts'

const CONFIG = `
max_batch_size: 4
input { name: "image" data_type: TYPE_FP32 dims: [ 3, -1 ] }
output { name: "text" data_type: TYPE_STRING dims: [ 1 ] }
`
export const MODEL_CONFIG = { ...parseModelConfig(CONFIG, 'config.pbtxt'), name: 'yolo' }

/** Builds a step's answer about the model `yolo` with one ready version. */
export function servedModel(revision = 'r1', o: Partial<ServedModel> = {}): ServedModel {
  const versions = [{ version: 1, revision, state: 'READY' as const, reason: '' }]
  return { name: 'yolo', config: MODEL_CONFIG, labels: {}, versions, reason: '', ...o }
}

const running = { startedAt: '2026-01-01T00:00:00Z' }

export function containerStatus(o: object = {}) {
  const image = { image: 'x', imageID: 'x' }
  return { name: 'main', ...image, ready: true, restartCount: 0, state: { running }, ...o }
}

const condition = (type: string, isTrue: boolean) => ({
  type,
  status: isTrue ? ('True' as const) : ('False' as const),
})

/** Builds a pod, which by default is ready and serves the model. */
export function modelPod(
  name: string,
  o: Partial<ModelPod> & { readonly status?: PodStatus; readonly isOpen?: boolean } = {},
): ModelPod {
  const { status, isOpen = true, isCurrent = true, ...rest } = o
  const annotations = { 'tutti.dev/template': isCurrent ? 't1' : 't0' }
  const pod = storedObject(
    { name, annotations },
    {
      kind: 'Pod',
      apiVersion: 'v1',
      spec: { containers: [], nodeName: 'node-1' },
      status: status ?? {
        phase: 'Running',
        conditions: [condition('ContainersReady', true), condition('Ready', isOpen)],
        containerStatuses: [containerStatus()],
      },
    },
  ) as Stored<Pod>
  return { pod, isCurrent, ...(status === undefined && { model: servedModel() }), ...rest }
}

export function modelDeployment(
  o: {
    readonly replicas?: number
    readonly template?: string
    readonly isPaused?: boolean
    readonly status?: Deployment['status']
  } = {},
): Stored<Deployment> {
  const { replicas = 1, template = 't1', isPaused } = o
  const all = { observedGeneration: 1, replicas, updatedReplicas: replicas }
  const ready = { readyReplicas: replicas, availableReplicas: replicas }
  return storedObject(
    { name: 'yolo-step', generation: 1 },
    {
      kind: 'Deployment',
      apiVersion: 'apps/v1',
      spec: {
        replicas,
        ...(isPaused !== undefined && { paused: isPaused }),
        selector: {},
        template: {
          metadata: { annotations: { 'tutti.dev/template': template } },
          spec: { containers: [] },
        },
      },
      status: { ...all, ...ready, ...o.status },
    },
  ) as Stored<Deployment>
}

/** Builds the world of the Model `yolo`, which by default is ready. */
export function modelWorld(
  o: Partial<ModelWorld> & { readonly fields?: Partial<ModelSpec> } = {},
): ModelWorld {
  const { fields, ...rest } = o
  const spec = ModelSpec.parse({
    modelFormat: { name: 'onnx' },
    storageUri: 'pvc://models/yolo',
    ...fields,
  })
  const model = storedObject({ name: 'yolo', generation: 1 }, { spec }) as Stored<ModelObject>
  return {
    model,
    host: { title: 'Model "yolo"', isItself: true, labels: stepSelector('yolo') },
    modelName: 'yolo',
    before: {},
    spec,
    scaling: toScaling(spec),
    rollout: spec.rollout,
    template: 't1',
    deployment: modelDeployment(),
    outcomes: [],
    pods: [modelPod('a')],
    accepted: [{ version: 1, revision: 'r1' }],
    routers: [
      {
        pod: 'router-1',
        served: {
          models: [{ name: 'yolo', versions: [{ version: 1, revisions: ['r1'] }] }],
          accepted: [],
        },
      },
    ],
    ...rest,
  }
}
