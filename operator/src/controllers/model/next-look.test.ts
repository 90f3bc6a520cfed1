import { SERVICE } from '@tutti/kube'
import t from 'tap'
import { containerStatus, modelPod, modelWorld } from '../../testing/model-world.ts'
import type { ModelWorld } from './model-world.ts'
import { toNextLook } from './next-look.ts'

const READY_AT = '2026-01-01T00:00:00Z'
const NOW = Date.parse(READY_AT) + 1000

const podStatus = (isReady: boolean, isOpen = false) => ({
  phase: 'Running' as const,
  conditions: [
    {
      type: 'ContainersReady',
      status: isReady ? ('True' as const) : ('False' as const),
      lastTransitionTime: READY_AT,
    },
    ...(isOpen ? [{ type: 'accepted.tutti.dev/yolo', status: 'True' as const }] : []),
  ],
  containerStatuses: [containerStatus({ ready: isReady })],
})

const withPod = (isReady: boolean, o: Partial<ModelWorld> = {}, isOpen = false) => {
  const { model } = modelPod('a')
  const pod = modelPod('a', { status: podStatus(isReady, isOpen), ...(isReady && { model }) })
  return modelWorld({ pods: [pod], ...o })
}

const key = { namespace: 'ns', name: 'yolo-step' }
const CASES: readonly {
  readonly name: string
  readonly world: ModelWorld
  readonly atMs?: number
  readonly wanted: number | undefined
}[] = [
  { name: 'all is well', world: withPod(true, {}, true), wanted: undefined },
  { name: 'a pod has just become ready', world: withPod(true), wanted: 300 },
  { name: 'a pod waits for long', world: withPod(true), atMs: NOW + 60_000, wanted: 2000 },
  { name: 'there is no router to ask', world: withPod(true, { routers: [] }), wanted: undefined },
  {
    name: 'a router has forgotten what an open pod serves',
    world: withPod(true, { routers: [{ pod: 'r', served: { models: [], accepted: [] } }] }, true),
    wanted: 2000,
  },
  { name: 'a process loads', world: withPod(false), wanted: 5000 },
  {
    name: "an object of somebody else's is in the way",
    world: withPod(true, {
      routers: [],
      outcomes: [{ resource: SERVICE, key, result: 'nameConflict', message: 'm' }],
    }),
    wanted: 10_000,
  },
]

for (const { name, world, atMs = NOW, wanted } of CASES) {
  await t.test(`the next look when ${name}`, async (t) => {
    t.equal(toNextLook(world, atMs), wanted)
  })
}
