import type { Event, PodStatus } from '@tutti/kube'
import t from 'tap'
import {
  containerStatus,
  modelDeployment,
  modelPod,
  servedModel,
} from '../../testing/model-world.ts'
import { findFailure } from './model-failure.ts'
import type { ModelPod } from './model-pods.ts'

const main = (o: object): PodStatus => ({
  phase: 'Running',
  containerStatuses: [containerStatus({ ready: false, ...o })],
})
const waiting = (reason: string, message: string) => ({ state: { waiting: { reason, message } } })
const lastEnd = (reason: string, exitCode: number, message?: string) => ({
  lastState: { terminated: { reason, exitCode, ...(message !== undefined && { message }) } },
})

const broken = (name: string, isCurrent: boolean) =>
  modelPod(name, { isCurrent, status: main(waiting('ErrImagePull', name)) })

const evicted = (name: string) =>
  modelPod(name, { status: { phase: 'Failed', reason: 'Evicted', message: 'low on memory' } })
/** Conditions by type: status, and seconds at which it came to be so. */
function conditions(all: Readonly<Record<string, readonly ['True' | 'False', number]>>) {
  return Object.entries(all).map(([type, [status, second]]) => ({
    type,
    status,
    lastTransitionTime: new Date(second * 1000).toISOString(),
    reason: '',
    message: '',
  }))
}

const CASES: readonly { name: string; status: PodStatus; wanted: object | undefined }[] = [
  {
    name: 'no node has capacity',
    status: {
      conditions: [
        { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/3 nodes' },
      ],
    },
    wanted: { reason: 'Unschedulable', message: '0/3 nodes', pod: 'a' },
  },
  {
    name: 'the node is lost',
    status: {
      phase: 'Running',
      conditions: conditions({ Ready: ['False', 9], ContainersReady: ['True', 3] }),
    },
    wanted: { reason: 'NodeNotReady', pod: 'a', message: 'node "node-1" does not answer' },
  },
  {
    name: 'the kubelet has not said yet that it is ready',
    status: {
      phase: 'Running',
      conditions: conditions({ Ready: ['False', 1], ContainersReady: ['True', 3] }),
    },
    wanted: undefined,
  },
  {
    name: 'a probe fails',
    status: {
      phase: 'Running',
      conditions: conditions({ Ready: ['False', 9], ContainersReady: ['False', 8] }),
    },
    wanted: undefined,
  },
  {
    name: 'its state is unknown',
    status: { phase: 'Unknown' },
    wanted: { reason: 'NodeNotReady' },
  },
  {
    name: 'the image cannot be had',
    status: main(waiting('ImagePullBackOff', 'Back-off pulling image')),
    wanted: { reason: 'ImagePullBackOff', message: 'Back-off pulling image', container: 'main' },
  },
  {
    name: 'a container cannot be made',
    status: main(waiting('CreateContainerConfigError', 'no such key')),
    wanted: { reason: 'CreateContainerConfigError', message: 'no such key' },
  },
  {
    name: 'the path is not in the claim',
    status: main(
      waiting(
        'CreateContainerConfigError',
        'failed to create subPath directory for volumeMount "model" of container "main"',
      ),
    ),
    wanted: { message: /of container "main"; want a PATH in storageUri that the claim has$/ },
  },
  {
    name: 'memory ran out',
    status: main({ ...waiting('CrashLoopBackOff', 'back-off 20s'), ...lastEnd('OOMKilled', 137) }),
    wanted: {
      reason: 'OOMKilled',
      exitCode: 137,
      message: 'container "main" ended with exit code 137',
    },
  },
  {
    name: 'the process ends again and again',
    status: main({ ...waiting('CrashLoopBackOff', 'back-off'), ...lastEnd('Error', 1, 'no flag') }),
    wanted: { reason: 'CrashLoopBackOff', message: 'no flag', exitCode: 1 },
  },
  {
    name: 'a fetch failed',
    status: {
      initContainerStatuses: [
        containerStatus({
          name: 'fetch',
          ready: false,
          state: {
            terminated: {
              exitCode: 12,
              reason: 'Error',
              message: '{"level":"warn","message":"fetch failed, trying again"}\ndigest differs',
            },
          },
        }),
      ],
    },
    wanted: { reason: 'FetchFailed', message: 'digest differs', container: 'fetch', exitCode: 12 },
  },
  {
    name: 'the node evicted it',
    status: { phase: 'Failed', reason: 'Evicted', message: 'low on memory' },
    wanted: { reason: 'Evicted', message: 'low on memory' },
  },
  {
    name: 'it crashed once and is well again',
    status: main({ ready: true, ...lastEnd('OOMKilled', 137) }),
    wanted: undefined,
  },
  { name: 'it is only starting', status: main(waiting('PodInitializing', '')), wanted: undefined },
]

for (const { name, status, wanted } of CASES) {
  await t.test(`a pod: ${name}`, async (t) => {
    const found = findFailure([modelPod('a', { status })], undefined)
    if (wanted === undefined) t.equal(found, undefined)
    else t.match(found, { pod: 'a', ...wanted })
  })
}

const loadFailure = (reason: string) => {
  const model = servedModel('r', { versions: [], reason })
  return findFailure([modelPod('a', { status: main({}), model })], undefined)?.message
}

/** The kubelet's event about a probe of this pod. */
const probed = (pod: ModelPod): Event => ({
  apiVersion: 'events.k8s.io/v1',
  kind: 'Event',
  metadata: { name: 'a.1', namespace: 'default' },
  type: 'Warning',
  reason: 'Unhealthy',
  note: 'Startup probe failed: HTTP probe failed with statuscode: 503',
  eventTime: '2026-01-01T00:00:30.000000Z',
  action: '',
  reportingController: 'kubelet',
  reportingInstance: '',
  regarding: { kind: 'Pod', name: 'a', uid: pod.pod.metadata.uid },
})

const failureWhileLoading = (restartCount: number) => {
  const model = servedModel('r', {
    versions: [{ version: 1, revision: 'r', state: 'LOADING', reason: '' }],
  })
  const pod = modelPod('a', { status: main({ restartCount }), model })
  return findFailure([pod], undefined, { events: [probed(pod)] })
}

await t.test('a startup probe that fails while the model loads is no failure', async (t) => {
  t.equal(failureWhileLoading(0), undefined)
  t.match(failureWhileLoading(1), { reason: 'Unhealthy', message: /Startup probe failed/ })
})

await t.test('an error that speaks of a repository says what to change at the Model', async (t) => {
  t.match(
    loadFailure(
      "unexpected directory name 'a' for model 'a.1', directory name must equal model name",
    ),
    /^unexpected directory.*; its config\.pbtxt has this name: want modelName 'a\.1', or no name there$/,
  )
  t.match(
    loadFailure("at least one version must be available under the version policy of model 'a'"),
    /'a'; want storageUri to name the folder that holds the versions, 1\/ say,/,
  )
  t.match(
    loadFailure(
      "Python interpreter 'python3' cannot be started (ENOENT); want Python 3.9 or newer",
    ),
    / or newer; the step's image may be one without Python: want another from step\.pythonImage/,
  )
  const noDevice =
    'instance group m_0 of model m has kind KIND_GPU but no GPUs are available (no accelerator, no CUDA driver: none)'
  const unsupported =
    'instance group m_0 of model m specifies invalid or unsupported gpu id 2. GPUs with at least the minimum required CUDA compute compatibility of 6.000000 are:'
  for (const [error, hint] of [
    [noDevice, /none\); its config\.pbtxt wants GPUs: want accelerator \{ count: 1 \}, or inst/],
    [`${unsupported}  (no accelerator, no CUDA driver: none)`, /: none\); .* want accelerator \{/],
    [
      `${unsupported} 0, 1 (accelerator nvidia.com/gpu=2, CUDA devices: 2)`,
      /: 2\); its config\.pbtxt names GPUs: want accelerator\.count above 2, or .* KIND_GPU, which/,
    ],
  ] as const) {
    t.match(loadFailure(error), hint)
  }
  const others = noDevice.replace('no accelerator', 'accelerator nvidia.com/gpu=1')
  t.equal(loadFailure(others), others, 'the devices are asked for, and the node lacks them')
  t.equal(loadFailure('no such file'), 'no such file')
})

await t.test('an empty folder is told by its storageUri', async (t) => {
  const uri = 'pvc://models/nowhere'
  const wanted = { spec: { storageUri: uri }, template: 't1' }
  const told = `'/models/yolo' is empty; that is storageUri '${uri}', want the model's folder there`
  const model = servedModel('r', {
    versions: [],
    reason: "cannot read model 'a': '/models/yolo' is empty",
  })
  const loading = modelPod('a', { status: main({}), model })
  t.equal(findFailure([loading], undefined, wanted)?.message, `cannot read model 'a': ${told}`)
  const message = "tutti-step fetch: '/models/yolo' is empty, want files with sha256:00"
  const state = { terminated: { exitCode: 10, reason: 'Error', message } }
  const status = {
    initContainerStatuses: [containerStatus({ name: 'fetch', ready: false, state })],
  }
  t.equal(
    findFailure([modelPod('a', { status })], undefined, wanted)?.message,
    `${message}; that is storageUri '${uri}', want the model's folder there`,
  )
  const ofFile = {
    ...state.terminated,
    message: "ENOTDIR: not a directory, scandir '/models/yolo'",
  }
  const failed = containerStatus({ name: 'main', ready: false, state: { terminated: ofFile } })
  t.match(
    findFailure([modelPod('a', { status: { containerStatuses: [failed] } })], undefined, wanted),
    { message: /; that is storageUri 'pvc:[^']*', want a folder there, not a file$/ },
  )
  const earlier = modelPod('a', { status, isCurrent: false })
  t.equal(findFailure([earlier], undefined, wanted)?.message, message, 'of another spec maybe')
  const edited = { ...wanted, template: 't2' }
  const left = modelPod('a', { status })
  t.equal(findFailure([left], undefined, edited)?.message, message, 'edited while it is paused')
})

await t.test('an image that cannot be copied from is told by its storageUri', async (t) => {
  const uri = 'image://models.example/yolo:1/yol'
  const wanted = { spec: { storageUri: uri }, template: 't1' }
  const failureOf = (name: string, message: string) => {
    const state = { terminated: { exitCode: 1, reason: 'Error', message } }
    const status = { initContainerStatuses: [containerStatus({ name, ready: false, state })] }
    return findFailure([modelPod('a', { status })], undefined, wanted)
  }
  for (const text of ["cp: cannot stat '/yol/.'", "cp: can't stat '/yol/.'"]) {
    t.match(failureOf('fetch', `${text}: No such file or directory`), {
      reason: 'FetchFailed',
      message: `${text}: No such file or directory; that is storageUri '${uri}', want a folder that the image has`,
    })
  }
  t.match(failureOf('fetch', 'exec: "cp": executable file not found in $PATH: unknown'), {
    message: /unknown; want an image in storageUri that has the program `cp`/,
  })
  t.match(failureOf('verify', 'it has sha256:1'), {
    reason: 'FetchFailed',
    message: 'it has sha256:1',
  })
})

await t.test('an error that is made to be slow to search is told as it is', async (t) => {
  const names = "unexpected directory name '".repeat(20_000)
  for (const slow of [names + "' for model '".repeat(20_000), 'subPath '.repeat(100_000)]) {
    t.ok(loadFailure(slow) === slow)
  }
})

await t.test("the model's own error, while the process lives", async (t) => {
  const status = main({})
  const model = servedModel('r', { versions: [], reason: 'no config.pbtxt' })
  t.match(findFailure([modelPod('a', { status, model })], undefined), {
    reason: 'ModelLoadFailed',
    message: 'no config.pbtxt',
    container: 'main',
  })
  const ready = modelPod('a', { model })
  t.match(findFailure([ready], undefined), { reason: 'ModelLoadFailed' }, 'ready without a model')
  const version = { version: 3, revision: 'r', state: 'UNAVAILABLE' as const, reason: 'bad file' }
  const second = servedModel('r', { versions: [version] })
  const other = { version: 2, revision: 'r', state: 'READY' as const, reason: '' }
  const partly = modelPod('a', { model: servedModel('r', { versions: [other, version] }) })
  t.equal(findFailure([partly], undefined), undefined, 'another version is served')
  t.match(findFailure([modelPod('a', { status, model: second })], undefined), {
    message: 'version 3: bad file',
  })
})

await t.test('pods of the newest template come first, then by name', async (t) => {
  const pods = [broken('a', false), broken('c', true), broken('b', true)]
  t.match(findFailure(pods, undefined), { message: 'b' })
})

await t.test('a pod that was evicted says nothing once others do its work', async (t) => {
  const behind = modelDeployment({ status: { availableReplicas: 0 } })
  t.equal(findFailure([evicted('a'), modelPod('b')], modelDeployment()), undefined)
  t.match(findFailure([evicted('a')], behind), { reason: 'Evicted', pod: 'a' })
  t.match(findFailure([evicted('a'), broken('b', false)], behind), { reason: 'ErrImagePull' })
  const old = modelDeployment({ status: { observedGeneration: 0 } })
  t.match(findFailure([evicted('a')], old), { reason: 'Evicted' })
})

await t.test('pods that cannot even be made', async (t) => {
  const deployment = modelDeployment({
    status: {
      conditions: [
        {
          type: 'ReplicaFailure',
          status: 'True',
          reason: 'FailedCreate',
          message: 'exceeded quota',
        },
      ],
    },
  })
  t.same(findFailure([], deployment), { reason: 'FailedCreate', message: 'exceeded quota' })
  t.equal(findFailure([modelPod('a')], modelDeployment()), undefined)
})
