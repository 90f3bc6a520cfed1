import { type Event, KubeError, type Stored } from '@tutti/kube'
import t from 'tap'
import { MADE_AT, POD_CAUSES, POD_UID } from '../testing/pod-causes.ts'
import { LatePods, toLatePodsDelayMs } from './late-pods.ts'
import type { PodState } from './pod-state.ts'

const MADE_MS = Date.parse(MADE_AT)
const { signal } = new AbortController()
const [mount] = POD_CAUSES.find(({ reason }) => reason === 'FailedMount')?.events ?? []

function podOf(o: { readonly isReady?: boolean; readonly claims?: readonly string[] } = {}) {
  const { isReady = false, claims = [] } = o
  const status = isReady ? ('True' as const) : ('False' as const)
  return {
    metadata: { name: 'a', namespace: 'ns', uid: POD_UID, creationTimestamp: MADE_AT },
    spec: {
      volumes: claims.map((claimName) => ({ name: 'v', persistentVolumeClaim: { claimName } })),
    },
    status: { conditions: [{ type: 'ContainersReady', status }] },
  } as unknown as Stored<PodState>
}

/** Makes a LatePods at this second of a pod's life, and notes what it asks the API server for, by field selector. */
function open(second: number, list = async () => ({ items: [mount], resourceVersion: '1' })) {
  const asked: (string | undefined)[] = []
  let nowMs = MADE_MS + 1000 * second
  const client = {
    list: (_: unknown, o: { readonly fieldSelector?: string }) => {
      asked.push(o.fieldSelector)
      return list()
    },
  }
  const late = new LatePods({ client: client as never, clock: { epochMs: () => nowMs } })
  return {
    asked,
    advance: (ms: number) => {
      nowMs += ms
    },
    eventsOf: (...pods: Stored<PodState>[]): Promise<readonly Event[]> =>
      late.eventsOf(pods, { signal }),
  }
}

await t.test('only of pods that are late, and of two of them', async (t) => {
  const early = open(9)
  t.same([await early.eventsOf(podOf()), early.asked], [[], []])
  const ready = open(90)
  t.same([await ready.eventsOf(podOf({ isReady: true })), ready.asked], [[], []])
  const { asked, eventsOf, advance } = open(11)
  t.same(await eventsOf(podOf()), [mount])
  t.same(asked, [`regarding.uid=${POD_UID}`])
  await eventsOf(podOf())
  t.equal(asked.length, 1, 'an answer counts for a moment')
  advance(10_000)
  await eventsOf(podOf(), podOf(), podOf())
  t.equal(asked.length, 3)
})

await t.test('of a pod without a node its claims are asked, too', async (t) => {
  const { asked, eventsOf } = open(11)
  await eventsOf(podOf({ claims: ['models'] }))
  t.same(asked, [
    `regarding.uid=${POD_UID}`,
    'regarding.kind=PersistentVolumeClaim,regarding.name=models',
  ])
})

await t.test('without a right to events the status of pods has to do', async (t) => {
  const forbidden = new KubeError({ status: 403, reason: 'Forbidden', message: 'no' })
  t.same(await open(11, () => Promise.reject(forbidden)).eventsOf(podOf()), [])
})

await t.test('the longer a pod waits, the less often it is looked at', async (t) => {
  const delayAt = (second: number, pod = podOf()) =>
    toLatePodsDelayMs([pod], MADE_MS + 1000 * second)
  t.same(
    [0, 4, 20, 200, 4000].map((second) => delayAt(second)),
    [10_000, 6000, 10_000, 50_000, 120_000],
  )
  t.equal(delayAt(20, podOf({ isReady: true })), undefined)
})
