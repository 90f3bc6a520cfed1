import { COMPONENT, MODEL_LABEL } from '@tutti/api'
import { type Deployment, noAnswer, type Pod, type Stored } from '@tutti/kube'
import t from 'tap'
import { startListServer } from '../testing/list-server.ts'
import { runKubectlCommand } from '../testing/run-kubectl-command.ts'
import { failureOf, followRollouts, type RolloutsSeen } from './follow-rollouts.ts'
import { RESTARTED_AT, rolloutOf } from './rollout.ts'

const NOW = '2026-11-27T10:00:00Z'
const meta = (name: string, more: object = {}) => ({
  name,
  namespace: 'shop',
  uid: `uid-${name}`,
  resourceVersion: '1',
  creationTimestamp: NOW,
  ...more,
})

function deployment(status: object, spec: object = {}): Stored<Deployment> {
  const matchLabels = { 'tutti.dev/model': 'm' }
  const metadata = { labels: matchLabels, annotations: { [RESTARTED_AT]: NOW } }
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: meta('m-step', { generation: 3 }),
    spec: {
      replicas: 2,
      selector: { matchLabels },
      template: { metadata, spec: { containers: [] } },
      ...spec,
    },
    status: { observedGeneration: 3, ...status },
  }
}

function pod(name: string, status: object, more: object = {}): Stored<Pod> {
  const own = { labels: { 'tutti.dev/model': 'm' }, annotations: { [RESTARTED_AT]: NOW }, ...more }
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: meta(name, own),
    spec: { containers: [], nodeName: 'n' },
    status,
  }
}

const READY = { conditions: [{ type: 'Ready', status: 'True' }] }
const PULLS = {
  containerStatuses: [
    {
      name: 'main',
      ready: false,
      restartCount: 0,
      state: { waiting: { reason: 'ImagePullBackOff', message: 'Back-off\npulling' } },
    },
  ],
}
const LATE = {
  conditions: [{ type: 'Progressing', status: 'False', reason: 'ProgressDeadlineExceeded' }],
}
const FULL = { conditions: [{ type: 'ReplicaFailure', status: 'True', message: 'exceeded quota' }] }
const ALL = { replicas: 2, updatedReplicas: 2, availableReplicas: 2 }

await t.test(
  'a rollout is done when only new pods are there and all of them are available',
  (t) => {
    const cases: [Stored<Deployment>, object][] = [
      [deployment(ALL), { state: 'done', text: 'restarted, 2 pods' }],
      [deployment({ ...ALL, observedGeneration: 2 }), { state: 'going', text: /not looked/ }],
      [
        deployment({ ...ALL, replicas: 3, availableReplicas: 3 }),
        { state: 'going', text: '0 of 2 new pods ready, 1 old pod left' },
      ],
      [
        deployment({ ...ALL, availableReplicas: 1 }),
        { state: 'going', text: /^0 of 2 new pods ready$/ },
      ],
      [
        deployment({ ...ALL, updatedReplicas: 1 }),
        { state: 'going', text: /ready, 1 old pod left$/ },
      ],
      [deployment({}), { state: 'going', text: '0 of 2 new pods ready' }],
      [deployment({}, { replicas: 0 }), { state: 'done', text: 'restarted, 0 pods' }],
      [deployment(LATE), { state: 'failed' }],
      [deployment({ ...ALL, ...LATE }), { state: 'done' }],
      [deployment(FULL), { cause: { reason: 'FailedCreate', message: 'exceeded quota' } }],
    ]
    for (const [one, wanted] of cases) {
      t.match(rolloutOf(one, { pods: [], events: [] }), wanted)
    }
    t.match(
      rolloutOf(deployment({ replicas: 2, updatedReplicas: 1 }), { pods: undefined, events: [] }),
      {
        text: '1 of 2 new pods made, 1 old pod left',
      },
    )
    t.end()
  },
)

await t.test('the cause is that of a new pod', (t) => {
  const pods = [
    pod('old', PULLS, { annotations: {} }),
    pod('other', PULLS, { labels: {} }),
    pod('leaving', PULLS, { deletionTimestamp: NOW }),
    pod('good', READY),
    pod('bad', PULLS),
  ]
  t.match(rolloutOf(deployment({}), { pods, events: [] }), {
    text: '1 of 2 new pods ready',
    cause: {
      reason: 'ImagePullBackOff',
      message: 'pod "bad": container "main": Back-off\npulling',
    },
  })
  t.end()
})

/** Follows one Deployment through these moments. */
async function follow(moments: readonly Partial<RolloutsSeen>[]) {
  const lines: string[] = []
  const left = [...moments]
  const ended = await followRollouts([{ uid: 'uid-m-step', title: 'Model m' }], {
    read: async () => ({ deployments: [], pods: [], events: [], ...left.shift() }),
    wait: async () => left.length > 0,
    out: (line) => lines.push(line),
  })
  const states = ended.map(({ state }) => state)
  const failures = ended.flatMap((one) => failureOf(one) ?? [])
  return { lines, states, failures, left: left.length }
}

await t.test('each change is one line', async (t) => {
  const going = {
    deployments: [deployment({ replicas: 3, updatedReplicas: 1 })],
    pods: [pod('p', PULLS)],
  }
  const done = { deployments: [deployment(ALL)] }
  t.same(await follow([going, going, done, going]), {
    lines: [
      'Model m: 0 of 2 new pods ready, 2 old pods left; ImagePullBackOff: pod "p": container "main": Back-off | pulling',
      'Model m: restarted, 2 pods',
    ],
    states: ['done'],
    failures: [],
    left: 1,
  })
})

await t.test('what does not go on ends it with the reason', async (t) => {
  const late = {
    deployments: [deployment(LATE, { progressDeadlineSeconds: 90 })],
    pods: [pod('p', PULLS)],
  }
  t.match(await follow([late]), {
    lines: [],
    states: ['failed'],
    failures: [/^Model m: no progress within 90 s, 0 of 2 new pods ready; ImagePullBackOff: pod/],
  })
  t.match(await follow([{}]), { failures: ['Model m: its Deployment was deleted'] })
  t.match(await follow([{ deployments: [deployment({})] }]), {
    states: ['late'],
    failures: ['not in time: Model m: 0 of 2 new pods ready'],
  })
})

/** Follows one Deployment, whose second look fails. */
function followOnce(error: Error) {
  const looks = [{ deployments: [deployment({})], pods: [], events: [] }]
  return followRollouts([{ uid: 'uid-m-step', title: 'Model m' }], {
    read: async () => {
      const seen = looks.shift()
      if (seen === undefined) throw error
      return seen
    },
    wait: async () => true,
    out: () => {},
  })
}

await t.test('what the API server does not tell any more has failed', async (t) => {
  const [ended, ...more] = await followOnce(noAnswer('NoConnection', 'GET /x: gone'))
  t.match(ended, { state: 'failed', message: 'not seen any more: GET /x: gone' })
  t.same(more, [])
  await t.rejects(followOnce(new TypeError('a bug')), { message: 'a bug' })
})

await t.test('what is paused is not restarted, and the text says how it goes on', async (t) => {
  const model = { metadata: meta('m'), spec: {} }
  const labels = { [COMPONENT]: 'step', [MODEL_LABEL]: 'm' }
  const held = { ...deployment({}, { paused: true }), metadata: meta('m-step', { labels }) }
  const host = { metadata: meta('host'), spec: { paused: true } }
  const ensemble = { metadata: meta('e'), spec: { paused: true } }
  const served = { 'model.tutti.dev/m': 'true', 'model.tutti.dev/host': 'true' }
  const ofPods = { [COMPONENT]: 'step', 'tutti.dev/ensemble': 'e', ...served }
  const shared = { ...deployment({}, {}), metadata: meta('e-step', { labels: ofPods }) }
  const cases = [
    [
      { models: [{ ...model, spec: { paused: true } }], deployments: [] },
      /restart: model\/m is paused, .*; kubectl --namespace default patch model\/m --type merge --patch '\{"spec":\{"paused":false\}\}' lets it go on\nsee .*#paused/,
    ],
    [
      { models: [model], deployments: [held] },
      /deployment\/m-step is paused, .* rollout resume deployment\/m-step lets it .*\nsee .*#paused/,
    ],
    [
      { models: [model, host], deployments: [shared] },
      /model\/host is paused, .* patch model\/host --type merge .*\nsee .*#paused/,
    ],
    [
      { models: [model], ensembles: [ensemble], deployments: [shared] },
      /ensemble\/e is paused, .* patch ensemble\/e --type merge .*\nsee .*#paused/,
    ],
    [{ models: [model], deployments: [] }, /Model m has no Deployment yet; .*\nsee .*#not_found/],
  ] as const
  for (const [items, err] of cases) {
    const kubeconfig = await startListServer(t, { items })
    const argv = ['restart', 'm', `--kubeconfig=${kubeconfig}`]
    t.match(await runKubectlCommand(argv), { code: 1, err })
  }
})
