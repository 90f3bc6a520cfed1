import { ServeError } from '@tutti/errors'
import type { Pod, Stored } from '@tutti/kube'
import t from 'tap'
import type { PodClient } from '../../pods/pod-client.ts'
import { storedObject } from '../../testing/stored-object.ts'
import { PodObserver } from './pod-observer.ts'

const O = { modelName: 'yolo', template: undefined, signal: new AbortController().signal }

function runningPod(name: string): Stored<Pod> {
  const main = {
    name: 'main',
    containerID: name,
    state: { running: {} },
    ready: false,
    restartCount: 0,
    image: '',
    imageID: '',
  }
  return storedObject(
    { name, uid: name },
    {
      spec: { containers: [] },
      status: { podIP: name, containerStatuses: [main] },
    },
  )
}

/** Plays pods that fail as `failures` says by their names, or else answer; and notes who was asked, in order. */
function playPods(failures: Readonly<Record<string, 'DEADLINE_EXCEEDED' | 'OVERLOADED'>>) {
  const asked: string[] = []
  const client: Pick<PodClient, 'servedByStep' | 'startOfStep'> = {
    startOfStep: async () => ({ loads: [] }),
    servedByStep: async ({ name }) => {
      asked.push(name)
      const reason = failures[name]
      if (reason !== undefined) throw new ServeError(reason, `pod "${name}"`)
      return { replica: name, models: [] }
    },
  }
  return { observer: new PodObserver(client), asked }
}

await t.test('pods that were silent are asked last, and told in the order of names', async (t) => {
  const failures: Record<string, 'DEADLINE_EXCEEDED' | 'OVERLOADED'> = {
    a: 'DEADLINE_EXCEEDED',
    b: 'DEADLINE_EXCEEDED',
    c: 'OVERLOADED',
  }
  const { observer, asked } = playPods(failures)
  const pods = ['d', 'c', 'b', 'a'].map(runningPod)
  const look = async () => {
    const observed = await observer.observe(pods, O)
    t.same(
      observed.map(({ pod }) => pod.metadata.name),
      ['a', 'b', 'c', 'd'],
    )
    return asked.splice(0)
  }
  t.same(await look(), ['a', 'b', 'c', 'd'])
  failures['b'] = 'OVERLOADED'
  t.same(await look(), ['c', 'd', 'a', 'b'])
  delete failures['b']
  t.same(await look(), ['c', 'd', 'a', 'b'], 'b was not asked')
  t.same(await look(), ['b', 'c', 'd', 'a'], 'b has answered')
  observer.forget('a')
  t.same(await look(), ['a', 'b', 'c', 'd'], 'a is gone')
})

await t.test('nothing is kept of a pod that goes while it is asked', async (t) => {
  const { observer, asked } = playPods({ a: 'DEADLINE_EXCEEDED' })
  const pods = ['a', 'b'].map(runningPod)
  const observing = observer.observe(pods, O)
  observer.forget('a')
  await observing
  await observer.observe(pods, O)
  t.same(asked, ['a', 'b', 'a', 'b'])
})

await t.test(
  'a pod that fetches or loads is asked how far it is, and need not answer',
  async (t) => {
    const transfer = { bytes: 1, totalBytes: 2 }
    const loads = [{ model: 'yolo', doing: 'engine python' }]
    const client: Pick<PodClient, 'servedByStep' | 'startOfStep'> = {
      startOfStep: async ({ name }) => {
        if (name === 'mute') throw new ServeError('POD_UNREACHABLE', 'no connection')
        return name === 'fetching' ? { loads: [], transfer } : { loads }
      },
      servedByStep: async ({ name }) => ({ replica: name, models: [] }),
    }
    const fetching = runningPod('fetching')
    const [main] = fetching.status?.containerStatuses ?? []
    const pods = [
      {
        ...fetching,
        status: {
          podIP: 'x',
          initContainerStatuses: [{ ...main, name: 'fetch' }],
          containerStatuses: [{ ...main, state: { waiting: {} } }],
        },
      },
      runningPod('loading'),
      runningPod('mute'),
    ] as Stored<Pod>[]
    const observed = await new PodObserver(client).observe(pods, O)
    t.same(
      observed.map(({ progress }) => progress),
      [{ loads: [], transfer }, { loads }, undefined],
    )
  },
)
