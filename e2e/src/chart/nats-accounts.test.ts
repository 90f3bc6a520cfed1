// needs: apiserver
import { withoutKube } from '@tutti/kube/testing'
import t from 'tap'
import { find, operatorArgsOf, render } from './helm.ts'

const WITH_HELM = { skip: withoutKube('helm') }

function numberOf(pattern: RegExp, text: string): number {
  return Number(pattern.exec(text)?.[1])
}

await t.test(
  'a namespace that fills all of its connections fits the memory of a server',
  WITH_HELM,
  async (t) => {
    const objects = await render()
    const args = operatorArgsOf(objects).join('\n')
    const config = find(objects, 'ConfigMap', 'tutti-nats')['data']['nats.conf']
    const { spec } = find(objects, 'StatefulSet', 'tutti-nats')['spec'].template
    const [container] = spec.containers
    const connections = numberOf(/per-namespace=(\d+)/, args.replace(/subscriptions\S+/, ''))
    const pendingMi = numberOf(/max_pending: (\d+)MB/, config)
    const goLimit = container.env.find((one: { name: string }) => one.name === 'GOMEMLIMIT').value
    const goLimitMi = numberOf(/^(\d+)MiB$/, goLimit)
    const limitMi = numberOf(/^(\d+)Mi$/, container.resources.limits.memory)
    // Code, accounts and connections; and twenty other namespaces, each with a connection that is behind.
    const most = connections * pendingMi + 20 * pendingMi + 128
    t.ok(most <= goLimitMi, `${most} MiB, GOMEMLIMIT ${goLimitMi} MiB`)
    // Memory that is allocated and not in use, and what the program has beside its heap: 1.25 times as measured.
    t.ok(goLimitMi * 1.25 <= limitMi, `${goLimitMi} MiB, limit ${limitMi} MiB`)
  },
)
