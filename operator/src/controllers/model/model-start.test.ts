import { ModelStatus, startText } from '@tutti/api'
import type { PodStatus } from '@tutti/kube'
import t from 'tap'
import { containerStatus, modelPod, modelWorld, servedModel } from '../../testing/model-world.ts'
import type { ModelPod } from './model-pods.ts'
import { findStart } from './model-start.ts'
import type { ModelWorld } from './model-world.ts'
import { summarize } from './summarize.ts'

const AT = '2026-01-01T00:00:30Z'
const running = { running: { startedAt: AT } }
const scheduled = { type: 'PodScheduled', status: 'True' as const, lastTransitionTime: AT }
const init = (name: string, state: object) => containerStatus({ name, ready: false, state })
const pending = (inits: readonly object[], containers: readonly object[] = []) =>
  ({
    phase: 'Pending',
    podIP: '10.0.0.1',
    conditions: [scheduled],
    initContainerStatuses: inits,
    containerStatuses: containers,
  }) as PodStatus
const loading = (main: object = { state: running }) =>
  pending(
    [init('fetch', { terminated: { exitCode: 0, finishedAt: AT } })],
    [containerStatus({ ready: false, ...main })],
  )
const startOf = (name: string, o: Parameters<typeof modelPod>[1]): ModelPod => modelPod(name, o)
const find = (...pods: readonly ModelPod[]) => findStart(modelWorld({ pods }))
const waiting = (reason: string) => ({ waiting: { reason } })

await t.test('each part of a start is told', (t) => {
  const transfer = { bytes: 1_999_999_999, totalBytes: 4_294_967_296 }
  const cases: readonly (readonly [string, string, Parameters<typeof modelPod>[1]])[] = [
    ['Image', 'image and volumes of container "main"', { status: { phase: 'Pending' } }],
    [
      'Image',
      'image and volumes of container "fetch"',
      { status: pending([init('fetch', waiting('PodInitializing'))]) },
    ],
    [
      'Image',
      'image and volumes of container "fetch" (ImagePullBackOff)',
      { status: pending([init('fetch', waiting('ImagePullBackOff'))]) },
    ],
    ['Files', 'its files', { status: pending([init('fetch', running)]) }],
    [
      'Files',
      'its files, 40 % of 4.29 GB',
      { status: pending([init('fetch', running)]), progress: { loads: [], transfer } },
    ],
    [
      'Files',
      'its files, more than 1.07 GB',
      {
        status: pending([init('fetch', running)]),
        progress: { loads: [], transfer: { bytes: transfer.bytes } },
      },
    ],
    [
      'Files',
      'its files, more than 0 B',
      {
        status: pending([init('fetch', running)]),
        progress: { loads: [], transfer: { bytes: 0 } },
      },
    ],
    ['Files', 'the digest of its files', { status: pending([init('verify', running)]) }],
    ['Files', 'init container "warm"', { status: pending([init('warm', running)]) }],
    ['Load', 'its load', { status: loading() }],
    [
      'Load',
      "its load: version 1, warm-up sample 's'",
      {
        status: loading(),
        progress: {
          loads: [
            { model: 'other', doing: 'x' },
            { model: 'yolo', doing: "version 1, warm-up sample 's'" },
          ],
        },
      },
    ],
    ['Load', 'its readiness probe', { status: loading(), model: servedModel() }],
    [
      'Load',
      'its load, which has failed',
      { status: loading(), model: servedModel('', { versions: [], reason: 'no file' }) },
    ],
    [
      'Load',
      'its load, whose process starts again (CrashLoopBackOff)',
      {
        status: loading({
          state: waiting('CrashLoopBackOff'),
          lastState: { terminated: { exitCode: 1, finishedAt: AT } },
        }),
      },
    ],
    ['Routers', 'routers, which take up what it serves', { isOpen: false }],
  ]
  for (const [waitsFor, message, o] of cases) {
    t.match(find(startOf('a', o)), { pod: 'a', waitsFor, message }, message)
  }
  const noNode = { ...startOf('a', { status: { phase: 'Pending' } }) }
  const pod = { ...noNode.pod, spec: {} }
  t.match(find({ ...noNode, pod }), { waitsFor: 'Node', message: 'a node' })
  const message = '0/1 nodes are available: 1 Insufficient cpu.'
  const conditions = [{ ...scheduled, status: 'False' as const, message }]
  const full = { ...pod, status: { phase: 'Pending', conditions } }
  t.match(find({ ...noNode, pod: full }), { waitsFor: 'Node', message: `a node: ${message}` })
  t.end()
})

await t.test('files of another Model in the same pods are not told as its own', (t) => {
  const transfer = { bytes: 500, totalBytes: 1000 }
  const host = { title: 'Model "detect"', isItself: false, labels: {} }
  const told = (container: string, o: Partial<ModelWorld> = {}) => {
    const status = pending([init(container, running)])
    const pod = startOf('a', { status, progress: { loads: [], transfer } })
    const { message, bytes } = findStart(modelWorld({ pods: [pod], ...o })) ?? {}
    return [message, bytes]
  }
  t.same(told('fetch-yolo', { host }), ['its files, 50 % of 1 kB', 500])
  t.same(told('fetch-other', { host }), ['the files of "other"', undefined])
  t.same(told('fetch', { host }), ['the files of Model "detect"', undefined])
  t.same(told('verify-other'), ['the digest of the files of "other"', undefined])
  t.end()
})

await t.test('the pod that is furthest is told, and none once all serve', (t) => {
  const fetching = startOf('b', { status: pending([init('fetch', running)]) })
  const last = startOf('c', { status: { phase: 'Pending' } })
  t.match(find(last, fetching, modelPod('a')), { pod: 'b', since: AT })
  t.equal(find(modelPod('a')), undefined)
  t.equal(find(modelPod('a', { isCurrent: false, status: loading() })), undefined, 'an old one')
  t.end()
})

const at = (bytes: number) =>
  startOf('a', {
    status: pending([init('fetch', running)]),
    progress: { loads: [], transfer: { bytes, totalBytes: 1000 } },
  })

await t.test('bytes of one tenth are one status, which the schema takes', (t) => {
  const statuses = new Set(
    Array.from({ length: 1001 }, (_, bytes) => {
      const status = summarize(modelWorld({ pods: [at(bytes)] }), Date.parse(AT))
      return JSON.stringify(ModelStatus.parse(status).start)
    }),
  )
  t.equal(statuses.size, 11)
  const [start] = [find(at(999))]
  t.equal(
    start && startText(start, Date.parse(AT) + 4000),
    'waits for its files, 90 % of 1 kB (4 s)',
  )
  t.end()
})
