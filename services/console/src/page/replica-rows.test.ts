import { array, assert, property, string } from 'fast-check'
import t from 'tap'
import type { ShownReplica } from '../api/replica.ts'
import { podsCommand, replicaRows } from './replica-rows.ts'

const READY = { version: '1', revision: 'r', state: 'READY', reason: '' }

function replica(
  name: string,
  o: { readonly models?: readonly string[]; readonly totals?: ShownReplica['totals'] } = {},
): ShownReplica {
  const { models = ['m'], totals = [] } = o
  const versions = models.map((model) => ({ ...READY, model }))
  const state = { host: '', state: 'taking work', reachedOver: 'nats', inFlight: 0 } as const
  return { replica: name, ...state, versions, totals }
}

const counted = (step: string, requests: number, failures: number) => {
  const [queueMs, transferMs, computeMs] = [requests, 2 * requests, 3 * requests]
  return { step, requests, failures, queueMs, transferMs, computeMs }
}

const reading = (atMs: number, all: readonly ShownReplica[], leftOut = 0) => ({
  atMs,
  replicas: { all, leftOut },
})

const MODEL = [{ name: '', model: 'm' }]

await t.test('what is counted for the first time counts from none', async (t) => {
  const before = reading(1000, [replica('a')])
  const now = reading(3000, [replica('a', { totals: [counted('', 10, 2)] }), replica('b')])
  const [a, b] = replicaRows({ steps: MODEL, now, before })
  t.match(a?.rates, {
    requestsPerSecond: 5,
    failuresPerSecond: 1,
    queueMs: 1,
    transferMs: 2,
    computeMs: 3,
  })
  t.equal(b?.rates, undefined, 'it has just come')
  t.equal(replicaRows({ steps: MODEL, now, before: undefined })[0]?.rates, undefined)
  const again = reading(4000, [replica('a', { totals: [counted('', 1, 0)] })])
  t.equal(
    replicaRows({ steps: MODEL, now: again, before: now })[0]?.rates,
    undefined,
    'it was reset',
  )
})

await t.test('each step has the replicas of its model', async (t) => {
  const steps = [
    { name: 'first', model: 'm' },
    { name: 'second', model: 'n' },
    { name: 'third', model: 'm' },
  ]
  const both = replica('both', { models: ['m', 'n'], totals: [counted('third', 4, 0)] })
  const before = reading(0, [replica('a'), replica('both', { models: ['m', 'n'] })])
  const rows = replicaRows({ steps, now: reading(1000, [replica('a'), both]), before })
  t.same(
    rows.map((row) => [row.step, row.replica.replica, row.rates?.requestsPerSecond]),
    [
      ['first', 'a', 0],
      ['first', 'both', 0],
      ['second', 'both', 0],
      ['third', 'a', 0],
      ['third', 'both', 4],
    ],
  )
})

await t.test('one that was there a moment ago is gone, unless there are too many', async (t) => {
  const before = reading(0, [replica('a'), replica('b')])
  const gone = (leftOut: number) =>
    replicaRows({ steps: MODEL, now: reading(1000, [replica('b')], leftOut), before })
      .filter(({ isGone }) => isGone)
      .map((row) => row.replica.replica)
  t.same(gone(0), ['a'])
  t.same(gone(1), [])
})

const on = (host: string, isGone = false) => ({ replica: { ...replica('r'), host }, isGone })

await t.test(
  'the nodes of pods are shown by a command, of names that are pods alone',
  async (t) => {
    const pods = [on('a-1'), on('b-2'), on('a-1'), on('gone-3', true), on(''), on('$(reboot)')]
    t.equal(podsCommand('shop', pods), 'kubectl get pods --namespace shop --output wide a-1 b-2')
    t.equal(podsCommand('shop', pods.slice(3)), undefined)
    const many = podsCommand(
      'shop',
      Array.from({ length: 50 }, (_, i) => on(`p${i}`)),
    )
    t.equal(many?.split(' p').length, 1 + 1 + 20, 'at most 20')
    const { length } = 'kubectl get pods --namespace shop --output wide '
    assert(
      property(array(string({ unit: 'binary' })), (hosts) => {
        const command = podsCommand(
          'shop',
          hosts.map((host) => on(host)),
        )
        return command === undefined || /^[a-z0-9. -]*$/.test(command.slice(length))
      }),
    )
  },
)
