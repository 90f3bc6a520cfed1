// needs: apiserver
import { withoutKube } from '@tutti/kube/testing'
import t from 'tap'
import { operatorArgsOf, render, type Values } from './helm.ts'

const WITH_HELM = { skip: withoutKube('helm') }

async function proxyArgs(values: Values): Promise<readonly string[]> {
  return operatorArgsOf(await render(values)).filter((arg) => /^--(?:https?|no)-proxy=/.test(arg))
}

await t.test(
  'the operator is told the proxies, with the names of the cluster',
  WITH_HELM,
  async (t) => {
    t.same(await proxyArgs({}), [])
    t.same(await proxyArgs({ 'proxy.https': 'http://proxy.example:3128' }), [
      '--https-proxy=http://proxy.example:3128',
      '--no-proxy=.svc,.cluster.local',
    ])
    const all = { https: 'http://a:1', http: 'http://b:2', none: '.svc,10.0.0.0/8' }
    t.same((await proxyArgs({ proxy: all })).toSorted(), [
      '--http-proxy=http://b:2',
      '--https-proxy=http://a:1',
      '--no-proxy=.svc,10.0.0.0/8',
    ])
  },
)

await t.test('what is no proxy is refused', WITH_HELM, async (t) => {
  await t.rejects(render({ 'proxy.https': 'socks5://a:1' }), /at '\/proxy\/https'/)
})
