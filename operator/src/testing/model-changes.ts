import { POD_FIELDS } from '@tutti/api'
import { change, changes, type FieldChange } from './field-changes.ts'
import { SCALING_CHANGES } from './scaling-changes.ts'

const IMAGE = { name: 'image', datatype: 'FP32', shape: [3, -1, -1] }
const BOXES = { name: 'boxes', datatype: 'FP32', shape: [-1, 4] }
const SAMPLE = { name: 'first', inputs: [{ ...IMAGE, data: 'Zero' }] }
const ARCHIVE = 'http://models.example/yolo.tar'
const IMAGE_URI = 'image://models.example/yolo:1/models/yolo'
const DIGEST = `sha256:${'a'.repeat(64)}`
const DEVICES = { accelerator: { count: 1 } }
const TAINT = { key: 'a', operator: 'Equal', value: 'b', effect: 'NoExecute' }

/** The spec of the Models in the field walk, over which each change puts its own fields. */
export const MODEL_SPEC = { modelFormat: { name: 'onnx' }, storageUri: ARCHIVE }

/** How the model itself is served: all of it is in the overrides that a step gets. */
const SERVING: readonly FieldChange[] = [
  ...changes({}, [
    ['modelFormat.name', 'onnx', 'python'],
    ['maxBatchSize', undefined, 8],
    ['maxBatchSize', 8, 0],
    ['versionPolicy.latest.numVersions', 1, 2],
    ['versionPolicy.all', undefined, {}],
    ['versionPolicy.specific.versions[]', 1, 2],
    ['instances.count', 1, 2],
    ['batching.preferredBatchSizes[]', 2, 4],
    ['batching.maxQueueDelay', '100us', '1ms'],
    ['batching.maxQueueDelay', '100us', 'auto'],
    ['batching.maxQueueLength', undefined, 16],
    ['batching.preferredBatchSizes', [2], []],
    ['warmup', [SAMPLE], []],
  ]),
  ...changes({ instances: { count: 1 } }, [
    ['instances.kind', undefined, 'KIND_CPU'],
    ['instances.kind', 'KIND_CPU', 'KIND_GPU'],
  ]),
  ...changes({ modelFormat: { name: 'python' }, instances: { count: 1 } }, [
    ['instances.sharedInterpreter', undefined, true],
  ]),
  ...changes({ inputs: [IMAGE] }, [
    ['inputs[].name', 'image', 'picture'],
    ['inputs[].datatype', 'FP32', 'UINT8'],
    ['inputs[].shape[]', 3, 1],
    ['inputs[].optional', undefined, true],
  ]),
  ...changes({ outputs: [BOXES] }, [
    ['outputs[].name', 'boxes', 'found'],
    ['outputs[].datatype', 'FP32', 'FP16'],
    ['outputs[].shape[]', -1, 100],
  ]),
  ...changes({ warmup: [SAMPLE] }, [
    ['warmup[].name', 'first', 'second'],
    ['warmup[].batchSize', undefined, 4],
    ['warmup[].count', undefined, 3],
    ['warmup[].inputs[].name', 'image', 'picture'],
    ['warmup[].inputs[].datatype', 'FP32', 'UINT8'],
    ['warmup[].inputs[].shape[]', 3, 1],
    ['warmup[].inputs[].data', 'Zero', 'Random'],
  ]),
  ...changes({ warmup: [{ name: 'first', inputs: [{ ...IMAGE, data: 'File' }] }] }, [
    ['warmup[].inputs[].file', 'a.bin', 'b.bin'],
  ]),
]

const ARTIFACTS: readonly FieldChange[] = [
  ...changes({}, [
    ['storageUri', ARCHIVE, 'pvc://models/yolo'],
    ['storageUri', 's3://models/a', 's3://models/b'],
    ['storageUri', ARCHIVE, IMAGE_URI],
    ['storageUri', 'gs://models/a', 'as://account/models/a'],
    ['storageUri', 'hf://owner/name@main/onnx', 'hf://owner/name@v2/onnx'],
    ['storageUri', 'oci://models.example:5000/yolo:1', `oci://models.example/yolo@${DIGEST}/a`],
    ['storageUri', 'image://models.example/yolo:2/models/yolo', IMAGE_URI],
    ['storage.digest', undefined, DIGEST],
    ['storage.secretRef.name', undefined, 'secret-a'],
    ['storage.secretRef.name', 'secret-a', 'secret-b'],
  ]),
  ...changes({ storageUri: 'pvc://models/yolo' }, [['storage.digest', undefined, DIGEST]]),
  ...changes({ storageUri: IMAGE_URI }, [['storage.digest', undefined, DIGEST]]),
  change(
    { at: 'operator', condition: 'Accepted=False/HostAccessNotAllowed', says: /^storageUri: / },
    ['storageUri', ARCHIVE, 'hostPath:///models/yolo'],
  ),
  change(
    {
      at: 'operator',
      condition: 'ArtifactsReady=False/SecretNotFound',
      says: /^storage\.secretRef\.name: /,
    },
    ['storage.secretRef.name', 'secret-a', 'missing'],
  ),
  change({ at: 'server', says: /spec\.modelName.*cannot be changed/ }, [
    'modelName',
    undefined,
    'other',
  ]),
]

const PODS: readonly FieldChange[] = [
  ...changes({}, [
    ['resources.requests{cpu}', '500m', '1'],
    ['resources.limits{memory}', undefined, '2Gi'],
    ['accelerator.resourceName', 'nvidia.com/gpu', 'amd.com/gpu'],
    ['accelerator.count', 1, 2],
    ['rollout.maxSurge', 1, '50%'],
    ['rollout.maxUnavailable', undefined, 1],
    ['disruptionBudget.minAvailable', 1, '50%'],
    ['disruptionBudget.maxUnavailable', 1, 2],
    ['timeouts.load', undefined, '5m'],
    ['timeouts.drain', '30s', '1m'],
    ['podTemplate.metadata.labels{team}', 'a', 'b'],
    ['podTemplate.metadata.annotations{note}', undefined, 'b'],
    ['resources.requests', { cpu: '1' }, {}],
    ['resources.limits', { cpu: '1' }, {}],
    ['accelerator.nodeSelector', { zone: 'a' }, {}],
    ['accelerator.tolerations', [TAINT], []],
    ['podTemplate.metadata.labels', { team: 'a' }, {}],
    ['podTemplate.metadata.annotations', { note: 'a' }, {}],
  ]),
  ...changes(DEVICES, [
    ['accelerator.runtimeClassName', undefined, 'nvidia'],
    ['accelerator.nodeSelector{zone}', 'a', 'b'],
  ]),
  ...changes({ accelerator: { tolerations: [TAINT] } }, [
    ['accelerator.tolerations[].key', 'a', 'c'],
    ['accelerator.tolerations[].value', 'b', 'c'],
    ['accelerator.tolerations[].effect', 'NoExecute', 'NoSchedule'],
    ['accelerator.tolerations[].tolerationSeconds', undefined, 30],
  ]),
  ...changes({ accelerator: { claims: [{ name: 'gpu' }] } }, [
    ['accelerator.claims[].resourceClaimName', 'claim-a', 'claim-b'],
    ['accelerator.claims[].resourceClaimTemplateName', 'claim-a', 'claim-b'],
  ]),
  ...changes({ accelerator: { claims: [{ resourceClaimName: 'claim-a' }] } }, [
    ['accelerator.claims[].name', 'gpu', 'other'],
  ]),
  ...changes({ accelerator: { tolerations: [{ key: 'a' }] } }, [
    ['accelerator.tolerations[].operator', undefined, 'Exists'],
  ]),
  change({ at: 'full nodes' }, ['rollout.whenFull', undefined, 'Replace']),
  change({ at: 'accepted' }, ['mayRunTwice', undefined, true]),
  ...changes({ scaling: { minReplicas: 2 } }, [['suspend', undefined, true]]),
  change(
    { at: 'operator', condition: 'Accepted=False/HostNotFound', says: /runsWith: got "gone"/ },
    ['runsWith', undefined, 'gone'],
  ),
  change({ at: 'conditions' }, ['paused', undefined, true]),
]

const MAIN = { name: 'main' }

/** Sample fields of a pod spec. */
const POD_SPEC = changes(
  {},
  [
    { nodeSelector: { zone: 'a' } },
    { priorityClassName: 'high' },
    { tolerations: [{ key: 'a', operator: 'Exists' }] },
    { containers: [{ ...MAIN, env: [{ name: 'A', value: 'b' }] }] },
    { containers: [{ ...MAIN, image: 'models.example/own:1', imagePullPolicy: 'Always' }] },
    { containers: [MAIN, { name: 'beside', image: 'models.example/beside:1' }] },
    { initContainers: [{ name: 'before', image: 'models.example/before:1' }] },
    { volumes: [{ name: 'tmp', emptyDir: { sizeLimit: '1Gi' } }] },
    { terminationGracePeriodSeconds: 90 },
    { topologySpreadConstraints: [{ $patch: 'replace' }] },
    { securityContext: { $patch: 'replace', seccompProfile: { type: 'RuntimeDefault' } } },
  ].map((spec) => ['podTemplate.spec', undefined, spec] as const),
)

/** The changes of the field walk for Models: every field of the spec, each changed alone. */
export const MODEL_CHANGES: readonly FieldChange[] = [
  ...SERVING,
  ...ARTIFACTS,
  ...PODS,
  ...POD_SPEC,
  change({ at: 'operator', condition: 'Degraded=True/Refused', says: /nodeSelektor/ }, [
    'podTemplate.spec',
    undefined,
    { nodeSelektor: { zone: 'a' } },
  ]),
  ...SCALING_CHANGES,
]

/** The changes of these fields that are seen in the objects which the operator makes. */
export const POD_CHANGES: readonly FieldChange[] = [
  ...PODS,
  ...POD_SPEC,
  ...SCALING_CHANGES,
].filter(
  ({ path, reach }) =>
    reach.at === 'children' && POD_FIELDS.some((field) => path.startsWith(field)),
)
