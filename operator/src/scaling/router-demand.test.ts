import { getEventListeners } from 'node:events'
import { setImmediate as turn } from 'node:timers/promises'
import type { WantedByRouter } from '@tutti/api'
import { silentLogger } from '@tutti/chassis'
import { createManualClock } from '@tutti/chassis/testing'
import { ServeError } from '@tutti/errors'
import type { Stored } from '@tutti/kube'
import t, { type Test } from 'tap'
import type { PodState } from '../pods/pod-state.ts'
import { RouterDemand } from './router-demand.ts'

function routerPod(name: string, isReady = true): Stored<PodState> {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      namespace: 'a',
      name,
      uid: name,
      resourceVersion: '1',
      creationTimestamp: '2026-01-01T00:00:00Z',
    },
    spec: {},
    status: {
      podIP: '127.0.0.1',
      conditions: [{ type: 'Ready', status: isReady ? 'True' : 'False' }],
    },
  }
}

/** Routers whose answers a test gives. */
function rig(t: Test) {
  const clock = createManualClock()
  const state = { namespaces: ['a'], pods: [routerPod('r1')] }
  const woken: (readonly string[])[] = []
  const questions: {
    readonly pod: string
    readonly seen: string
    readonly signal: AbortSignal
    readonly answer: (answer: WantedByRouter | Error) => void
  }[] = []
  const demand = new RouterDemand({
    client: {
      wantedByRouter: ({ name }, { seen, signal }) =>
        new Promise((resolve, reject) => {
          signal.addEventListener('abort', () => reject(new Error('aborted')), { once: true })
          const answer = (one: WantedByRouter | Error): void =>
            one instanceof Error ? reject(one) : resolve(one)
          questions.push({ pod: name, seen, signal, answer })
        }),
    },
    namespaces: () => state.namespaces,
    routersOf: () => state.pods,
    onWanted: (_namespace, models) => woken.push([...models]),
    clock,
    log: silentLogger,
  })
  demand.start()
  t.teardown(async () => {
    demand.stop()
    await demand.drained()
  })
  return { clock, state, woken, questions, demand }
}

await t.test('a router is asked again and again, and its demand told at once', async (t) => {
  const { clock, woken, questions, demand } = rig(t)
  t.match(questions, [{ pod: 'r1', seen: '' }])
  questions[0]?.answer({ seen: '1', models: [] })
  await turn()
  t.same(woken, [])
  clock.advance(100)
  await turn()
  t.match(questions, [{}, { seen: '1' }])
  questions[1]?.answer({ seen: '2', models: ['m', 'n'] })
  await turn()
  t.same(woken, [['m', 'n']])
  t.ok(demand.isWanted('a', 'n'))
  t.notOk(demand.isWanted('b', 'n'))
  clock.advance(100)
  await turn()
  questions[2]?.answer({ seen: '2', models: ['m', 'n'] })
  await turn()
  t.equal(woken.length, 2, 'what still waits is told again')
  clock.advance(100)
  await turn()
  questions[3]?.answer({ seen: '3', models: [] })
  await turn()
  t.notOk(demand.isWanted('a', 'n'))
  t.equal(woken.length, 2)
})

await t.test('a router that does not answer is asked again after a second', async (t) => {
  const { clock, questions, demand, woken } = rig(t)
  questions[0]?.answer({ seen: '1', models: ['m'] })
  await turn()
  clock.advance(100)
  await turn()
  questions[1]?.answer(new ServeError('POD_UNREACHABLE', 'away'))
  await turn()
  t.notOk(demand.isWanted('a', 'm'), 'what it said is out of date')
  clock.advance(999)
  await turn()
  t.equal(questions.length, 2)
  clock.advance(1)
  await turn()
  t.match(questions[2], { seen: '' }, 'from the beginning')
  t.equal(woken.length, 1)
})

await t.test('questions to a router leave nothing behind at its signal', async (t) => {
  const { clock, questions } = rig(t)
  for (let i = 0; i < 5; i += 1) {
    questions[i]?.answer({ seen: `${i}`, models: [] })
    await turn()
    clock.advance(100)
    await turn()
  }
  const signal = questions[5]?.signal
  t.equal(
    signal && getEventListeners(signal, 'abort').length,
    6,
    'those of the six questions of this test',
  )
})

await t.test('routers that come are asked, those that go are not', async (t) => {
  const { clock, state, questions } = rig(t)
  state.pods = [routerPod('r1', false), routerPod('r2')]
  clock.advance(1000)
  t.same(
    questions.map(({ pod, signal }) => [pod, signal.aborted]),
    [
      ['r1', true],
      ['r2', false],
    ],
  )
  state.namespaces = []
  clock.advance(1000)
  t.ok(questions[1]?.signal.aborted, 'no Model of the namespace may sleep')
  await turn()
  t.equal(questions.length, 2)
})
