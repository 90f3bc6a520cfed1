import type { Event, PodStatus } from '@tutti/kube'

/** A cause that keeps pods from being ready, as kubelets, schedulers and controllers report it. */
export interface PodCause {
  readonly name: string
  readonly status: PodStatus
  readonly events?: readonly Event[]
  /** Names of claims that the pod mounts. */
  readonly claims?: readonly string[]
  /** True if the pod has no node yet. */
  readonly isUnbound?: boolean
  /** Message of the ReplicaSet if it cannot create a pod; then there is no pod. */
  readonly refused?: string
  /** Reason that the condition must have. */
  readonly reason: string
  /** Text that the condition's message must contain. */
  readonly words: string
}

/** The creation time of the pod. Later times are given in seconds after it. */
export const MADE_AT = '2026-01-01T00:00:00Z'
/** The uid of the pod. */
export const POD_UID = 'uid-of-a'

const at = (second: number): string =>
  new Date(Date.parse(MADE_AT) + 1000 * second).toISOString().replace('.000', '')

/** As `events.k8s.io` shows what was written as an event of `v1`. */
function event(
  second: number,
  reason: string,
  note: string,
  o: { readonly type?: Event['type']; readonly container?: string; readonly claim?: string } = {},
): Event {
  const { type = 'Warning', container, claim } = o
  const fieldPath = container && { fieldPath: `spec.containers{${container}}` }
  const regarding =
    claim === undefined
      ? { kind: 'Pod', name: 'a', uid: POD_UID, apiVersion: 'v1', ...fieldPath }
      : { kind: 'PersistentVolumeClaim', name: claim, uid: 'c', apiVersion: 'v1' }
  const old = { deprecatedLastTimestamp: at(second), deprecatedCount: 3 }
  return {
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { name: `a.${second}.${reason}` },
    // Kubelets leave it empty.
    eventTime: null as never,
    reportingController: 'kubelet',
    reportingInstance: 'node-1',
    action: '',
    reason,
    type,
    note,
    regarding,
    ...old,
  }
}

const condition = (type: string, reason?: string, message?: string) => ({
  type,
  status: 'False' as const,
  lastTransitionTime: at(0),
  ...(reason !== undefined && { reason }),
  ...(message !== undefined && { message }),
})
const image = { image: 'x', imageID: '', restartCount: 0, ready: false }
const main = (state: object, o: object = {}) => ({ name: 'main', ...image, state, ...o })
const waiting = (reason: string, message = '') => ({ waiting: { reason, message } })
const ended = (exitCode: number, reason: string, message = '') => ({
  terminated: { exitCode, reason, message, startedAt: at(1), finishedAt: at(20) },
})
/** The fetch of the model's files has ended well. */
const fetched = { name: 'fetch', ...image, ready: true, state: ended(0, 'Completed') }
const fetching = (state: object, o: object = {}) => ({ name: 'fetch', ...image, state, ...o })
const pending = (state: object, o: object = {}): PodStatus => ({
  phase: 'Pending',
  conditions: [condition('ContainersReady')],
  containerStatuses: [main(state, o)],
})
const running = (o: object = {}): PodStatus => ({
  phase: 'Running',
  conditions: [condition('ContainersReady')],
  containerStatuses: [main({ running: { startedAt: at(2) } }, o)],
})
const CREATING = pending(waiting('ContainerCreating'))
const UNSCHEDULED = (message: string, reason = 'Unschedulable'): PodStatus => ({
  phase: 'Pending',
  conditions: [condition('PodScheduled', reason, message)],
})
const evicted = (reason: string, message: string): PodStatus => ({
  phase: 'Failed',
  reason,
  message,
})
const resting = waiting('CrashLoopBackOff', 'back-off 40s restarting failed container=main')
const NOTHING: PodStatus = {}

const PULL = 'failed to pull and unpack image "x": not found'
const BACK_OFF = `Back-off pulling image "x": ErrImagePull: ${PULL}`
const UNBOUND = '0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims.'
const normal = { type: 'Normal' } as const

/** All causes, with the reasons that docs/conditions.md lists. */
export const POD_CAUSES: readonly PodCause[] = [
  {
    name: 'the image of main cannot be pulled, behind a fetch that has finished',
    status: { ...pending(waiting('ImagePullBackOff', BACK_OFF)), initContainerStatuses: [fetched] },
    reason: 'ImagePullBackOff',
    words: PULL,
  },
  {
    name: 'an image cannot be pulled for the first time',
    status: pending(waiting('ErrImagePull', PULL)),
    reason: 'ErrImagePull',
    words: PULL,
  },
  {
    name: 'the image of a fetch cannot be pulled',
    status: {
      phase: 'Pending',
      initContainerStatuses: [fetching(waiting('ErrImagePull', PULL))],
      containerStatuses: [main(waiting('PodInitializing'))],
    },
    reason: 'ErrImagePull',
    words: PULL,
  },
  {
    name: 'an image may not be pulled',
    status: pending(waiting('ErrImageNeverPull', 'Container image "x" is not present')),
    reason: 'ErrImageNeverPull',
    words: 'is not present',
  },
  {
    name: 'an image has no valid name',
    status: pending(waiting('InvalidImageName', "couldn't parse image name")),
    reason: 'InvalidImageName',
    words: "couldn't parse",
  },
  {
    name: 'the signature of an image is not valid',
    status: pending(waiting('SignatureValidationFailed', 'Source image rejected')),
    reason: 'SignatureValidationFailed',
    words: 'rejected',
  },
  {
    name: 'a registry is away',
    status: pending(waiting('RegistryUnavailable', 'image pull failed: registry is unavailable')),
    reason: 'RegistryUnavailable',
    words: 'unavailable',
  },
  {
    name: 'a Secret of the environment is missing',
    status: pending(waiting('CreateContainerConfigError', 'secret "x" not found')),
    reason: 'CreateContainerConfigError',
    words: 'secret "x" not found',
  },
  {
    name: 'a container cannot be made',
    status: pending(waiting('CreateContainerError', 'context deadline exceeded')),
    reason: 'CreateContainerError',
    words: 'deadline',
  },
  {
    name: 'a container cannot be started',
    status: pending(waiting('RunContainerError', 'exec: "nope": not found in $PATH')),
    reason: 'RunContainerError',
    words: 'nope',
  },
  {
    name: 'its hook after the start fails',
    status: pending(waiting('PostStartHookError', 'command exited with 1')),
    reason: 'PostStartHookError',
    words: 'exited with 1',
  },
  {
    name: 'it ends again and again, with words',
    status: pending(resting, { lastState: ended(1, 'Error', 'no such flag --x') }),
    reason: 'CrashLoopBackOff',
    words: 'no such flag --x',
  },
  {
    name: 'it ends again and again, as if all were well',
    status: pending(resting, { lastState: ended(0, 'Completed') }),
    reason: 'CrashLoopBackOff',
    words: 'ended with exit code 0',
  },
  {
    name: 'it has ended once',
    status: pending(ended(2, 'Error', 'no broker')),
    reason: 'Error',
    words: 'no broker',
  },
  {
    name: 'its program is not there',
    status: pending(ended(128, 'StartError', 'exec: "tutti-step": executable file not found')),
    reason: 'StartError',
    words: 'executable file not found',
  },
  {
    name: 'its memory is too small',
    status: pending(resting, { lastState: ended(137, 'OOMKilled') }),
    reason: 'OOMKilled',
    words: 'exit code 137',
  },
  {
    name: 'its startup probe ends it',
    status: pending(resting, { lastState: ended(137, 'Error') }),
    events: [
      event(18, 'Unhealthy', 'Startup probe failed: HTTP probe failed with statuscode: 500', {
        container: 'main',
      }),
      event(20, 'BackOff', 'Back-off restarting failed container main in pod a'),
    ],
    reason: 'Unhealthy',
    words: 'Startup probe failed',
  },
  {
    name: 'its liveness probe ended it, and it runs again',
    status: running({ restartCount: 1, lastState: ended(143, 'Error') }),
    events: [
      event(19, 'Unhealthy', 'Liveness probe failed: context deadline exceeded', {
        container: 'main',
      }),
      event(21, 'Started', 'Container started', normal),
    ],
    reason: 'Unhealthy',
    words: 'Liveness probe failed: context deadline exceeded',
  },
  {
    name: 'its readiness probe fails',
    status: running(),
    events: [
      event(2, 'Started', 'Container started', normal),
      event(30, 'Unhealthy', 'Readiness probe failed: dial tcp: connection refused', {
        container: 'main',
      }),
    ],
    reason: 'Unhealthy',
    words: 'connection refused',
  },
  {
    name: 'no node has capacity',
    status: UNSCHEDULED('0/3 nodes are available: 3 Insufficient cpu.'),
    isUnbound: true,
    reason: 'Unschedulable',
    words: '3 Insufficient cpu',
  },
  {
    name: 'no node has its taint tolerated',
    status: UNSCHEDULED('0/1 nodes are available: 1 node(s) had untolerated taint {gpu: }.'),
    isUnbound: true,
    reason: 'Unschedulable',
    words: 'untolerated taint',
  },
  {
    name: 'its claim does not exist',
    status: UNSCHEDULED('0/1 nodes are available: persistentvolumeclaim "models" not found.'),
    isUnbound: true,
    claims: ['models'],
    reason: 'Unschedulable',
    words: 'persistentvolumeclaim "models" not found',
  },
  {
    name: 'the class of its claim does not exist',
    status: UNSCHEDULED(UNBOUND),
    isUnbound: true,
    claims: ['models'],
    events: [
      event(5, 'ProvisioningFailed', 'storageclass.storage.k8s.io "fast" not found', {
        claim: 'models',
      }),
    ],
    reason: 'ProvisioningFailed',
    words: 'PersistentVolumeClaim "models": storageclass.storage.k8s.io "fast" not found',
  },
  {
    name: 'its claim has neither a volume nor a class',
    status: UNSCHEDULED(UNBOUND),
    isUnbound: true,
    claims: ['models'],
    events: [
      event(5, 'FailedBinding', 'no persistent volumes available and no storage class is set', {
        ...normal,
        claim: 'models',
      }),
    ],
    reason: 'FailedBinding',
    words: 'no storage class is set',
  },
  {
    name: 'the scheduler fails',
    status: UNSCHEDULED('running PreBind plugin "VolumeBinding": timed out', 'SchedulerError'),
    isUnbound: true,
    reason: 'SchedulerError',
    words: 'timed out',
  },
  {
    name: 'somebody holds back its scheduling',
    status: UNSCHEDULED(
      'Scheduling is blocked due to non-empty scheduling gates',
      'SchedulingGated',
    ),
    isUnbound: true,
    reason: 'SchedulingGated',
    words: 'scheduling gates',
  },
  {
    name: 'a volume cannot be mounted',
    status: CREATING,
    events: [
      event(1, 'Scheduled', 'Successfully assigned', normal),
      event(9, 'FailedMount', 'MountVolume.SetUp failed for volume "v": secret "x" not found'),
    ],
    reason: 'FailedMount',
    words: 'secret "x" not found',
  },
  {
    name: 'a volume is attached elsewhere',
    status: CREATING,
    events: [event(9, 'FailedAttachVolume', 'Multi-Attach error for volume "pvc-1"')],
    reason: 'FailedAttachVolume',
    words: 'Multi-Attach error',
  },
  {
    name: 'its network cannot be made',
    status: CREATING,
    events: [event(9, 'FailedCreatePodSandBox', 'plugin type="calico" failed (add)')],
    reason: 'FailedCreatePodSandBox',
    words: 'calico',
  },
  {
    name: 'the network of its node is not ready',
    status: CREATING,
    events: [event(9, 'NetworkNotReady', 'cni plugin not initialized')],
    reason: 'NetworkNotReady',
    words: 'cni plugin not initialized',
  },
  {
    name: 'its node is lost',
    status: {
      phase: 'Running',
      conditions: [
        { ...condition('Ready'), lastTransitionTime: at(9) },
        { ...condition('ContainersReady'), status: 'True' as const },
      ],
      containerStatuses: [main({ running: {} }, { ready: true })],
    },
    reason: 'NodeNotReady',
    words: 'node "node-1" does not answer',
  },
  {
    name: 'its node evicted it',
    status: evicted('Evicted', 'The node was low on resource: memory.'),
    reason: 'Evicted',
    words: 'low on resource: memory',
  },
  {
    name: 'its node did not admit it',
    status: evicted('UnexpectedAdmissionError', 'Allocate failed due to no devices'),
    reason: 'UnexpectedAdmissionError',
    words: 'no devices',
  },
  {
    name: 'its node was shut down',
    status: evicted('Terminated', 'Pod was terminated in response to imminent node shutdown.'),
    reason: 'Terminated',
    words: 'node shutdown',
  },
  {
    name: 'it failed without a reason',
    status: { phase: 'Failed' },
    reason: 'PodFailed',
    words: 'the pod has failed',
  },
  ...[
    'pods "a-" is forbidden: exceeded quota: all, requested: pods=1, used: pods=9, limited: pods=9',
    'pods "a-" is forbidden: maximum memory usage per Container is 1Gi, but limit is 2Gi',
    'pods "a-" is forbidden: violates PodSecurity "restricted:latest": privileged',
    'admission webhook "policy.example" denied the request: no',
    'pods "a-" is forbidden: error looking up service account ns/x: serviceaccount "x" not found',
    'pods "a-" is forbidden: no PriorityClass with name high was found',
    'pods "a-" is forbidden: pod rejected: RuntimeClass "gvisor" not found',
  ].map((words) => ({
    name: `no pod can be made: ${words.slice(0, 60)}`,
    status: NOTHING,
    refused: words,
    reason: 'FailedCreate',
    words,
  })),
]
