import t from 'tap'
import { deployment, startListServer } from '../testing/list-server.ts'
import { runKubectlCommand } from '../testing/run-kubectl-command.ts'

const COMPONENT = 'app.kubernetes.io/component'
const DONE = { replicas: 1, updatedReplicas: 1, availableReplicas: 1 }
const LATE = {
  conditions: [{ type: 'Progressing', status: 'False', reason: 'ProgressDeadlineExceeded' }],
}
const DEPLOYMENTS = [
  deployment('slow-step', { [COMPONENT]: 'step', 'tutti.dev/model': 'slow' }, DONE),
  deployment('alone-step', { [COMPONENT]: 'step', 'tutti.dev/model': 'alone' }, LATE),
  deployment('tutti-router', { [COMPONENT]: 'router' }, {}),
  deployment('tutti-builtins', { [COMPONENT]: 'step', 'tutti.dev/builtins': 'true' }, DONE),
]

await t.test('kubectl tutti restart says how each Deployment ended, as JSON', async (t) => {
  const items = { deployments: DEPLOYMENTS }
  const kubeconfig = `--kubeconfig=${await startListServer(t, { items })}`
  const restart = async (...argv: readonly string[]) => {
    const { code, out, err } = await runKubectlCommand(['restart', ...argv, kubeconfig])
    return { code, err, result: JSON.parse(out) }
  }
  const slow = { deployment: 'slow-step', models: ['slow'] }
  t.same(await restart('ens', '-o', 'json'), {
    code: 0,
    err: '',
    result: {
      restarted: [{ ...slow, state: 'done', message: 'restarted, 1 pod' }],
      missing: ['none'],
    },
  })
  t.same((await restart('slow', '-o', 'json', '--no-wait')).result, {
    restarted: [{ ...slow, state: 'started', message: '' }],
    missing: [],
  })
  t.match(await restart('router', '-o', 'json', '--timeout=1ms'), {
    code: 1,
    err: '',
    result: {
      restarted: [
        { deployment: 'tutti-router', models: [], state: 'late', message: /^0 of 1 new pod/ },
      ],
    },
  })
  t.match(await restart('alone', '-o', 'json'), {
    code: 1,
    err: '',
    result: { restarted: [{ models: ['alone'], state: 'failed', message: /^no progress within/ }] },
  })
})

await t.test('kubectl tutti restart goes on after a refusal, and prints what it did', async (t) => {
  const items = {
    deployments: DEPLOYMENTS,
    ensembles: [
      {
        apiVersion: 'tutti.dev/v1alpha1',
        kind: 'Ensemble',
        metadata: { name: 'both', namespace: 'default', uid: 'both', resourceVersion: '1' },
        spec: {
          steps: ['alone', 'slow'].map((name) => ({ name, modelRef: { name } })),
        },
      },
    ],
  }
  const kubeconfig = await startListServer(t, { items, unpatchable: ['alone-step'] })
  const restart = (...argv: readonly string[]) =>
    runKubectlCommand(['restart', 'both', `--kubeconfig=${kubeconfig}`, ...argv])
  const refused = { deployment: 'alone-step', state: 'failed', message: 'not restarted: forbidden' }
  for (const [state, ...flags] of [['done'], ['started', '--no-wait']]) {
    const { code, out, err } = await restart('-o', 'json', ...flags)
    t.match([code, err], [1, ''])
    t.match(JSON.parse(out), { restarted: [refused, { deployment: 'slow-step', state }] })
  }
  const err = 'kubectl tutti restart: Model alone: not restarted: forbidden\n'
  t.match(await restart(), { code: 1, err, out: /^Model slow: restart of Deployment slow-step\n/ })
})

await t.test('kubectl tutti restart replaces the pods of built-in steps too', async (t) => {
  const steps = [
    { name: 'a', builtin: { name: 'resize' } },
    { name: 'b', modelRef: { name: 'slow' } },
  ]
  const ensembles = [
    {
      apiVersion: 'tutti.dev/v1alpha1',
      kind: 'Ensemble',
      metadata: { name: 'mixed', namespace: 'default', uid: 'mixed', resourceVersion: '1' },
      spec: { steps },
    },
  ]
  const kubeconfig = await startListServer(t, { items: { deployments: DEPLOYMENTS, ensembles } })
  const { code, out } = await runKubectlCommand(['restart', 'mixed', `--kubeconfig=${kubeconfig}`])
  t.equal(code, 0)
  t.match(out, 'Model slow: restart of Deployment slow-step\n')
  t.match(out, 'built-ins: restart of Deployment tutti-builtins\n')
})
