import t from 'tap'
import { deployment, startListServer } from '../../testing/list-server.ts'
import { runKubectlCommand } from '../../testing/run-command.ts'

const COMPONENT = 'app.kubernetes.io/component'
const DONE = { replicas: 1, updatedReplicas: 1, availableReplicas: 1 }
const LATE = {
  conditions: [{ type: 'Progressing', status: 'False', reason: 'ProgressDeadlineExceeded' }],
}
const DEPLOYMENTS = [
  deployment('slow-step', { [COMPONENT]: 'step', 'tutti.dev/model': 'slow' }, DONE),
  deployment('alone-step', { [COMPONENT]: 'step', 'tutti.dev/model': 'alone' }, LATE),
  deployment('tutti-router', { [COMPONENT]: 'router' }, {}),
]

await t.test('kubectl tutti restart says how each Deployment ended, as JSON', async (t) => {
  const items = { deployments: DEPLOYMENTS }
  const kubeconfig = `--kubeconfig=${await startListServer(t, { items })}`
  const restart = async (...argv: readonly string[]) => {
    const { code, out, err } = await runKubectlCommand(['restart', ...argv, kubeconfig])
    return { code, err, result: JSON.parse(out) }
  }
  const slow = { deployment: 'slow-step', model: 'slow' }
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
        { deployment: 'tutti-router', model: null, state: 'late', message: /^0 of 1 new pod/ },
      ],
    },
  })
  t.match(await restart('alone', '-o', 'json'), {
    code: 1,
    err: '',
    result: { restarted: [{ model: 'alone', state: 'failed', message: /^no progress within/ }] },
  })
})
