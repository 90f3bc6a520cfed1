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

await t.test('the operator is told the variables of fetches', WITH_HELM, async (t) => {
  const secretKeyRef = { name: 'hub', key: 'token', optional: true }
  const fetchEnv = [
    { name: 'HF_TOKEN', valueFrom: { secretKeyRef } },
    { name: 'HF_ENDPOINT', value: 'https://mirror.example' },
  ]
  const args = operatorArgsOf(await render({ step: { fetchEnv } }))
  const flag = args.find((arg) => arg.startsWith('--fetch-env=')) ?? ''
  t.same(JSON.parse(flag.slice('--fetch-env='.length)), fetchEnv)
  for (const variable of [{ name: 'A' }, { name: 'A', value: 'b', valueFrom: { secretKeyRef } }]) {
    await t.rejects(render({ step: { fetchEnv: [variable] } }), /at '\/step\/fetchEnv\/0'/)
  }
})

await t.test('what is no proxy is refused', WITH_HELM, async (t) => {
  await t.rejects(render({ 'proxy.https': 'socks5://a:1' }), /at '\/proxy\/https'/)
})
