// needs: apiserver
import { withoutKube } from '@tutti/kube/testing'
import t from 'tap'
import { find, operatorArgsOf, type Rendered, render } from './helm.ts'

const WITH_HELM = { skip: withoutKube('helm') }
const MESH = { 'networkPolicy.meshPorts': [15008] }

const rulesWith = (rules: readonly Rendered[], wanted: number): readonly Rendered[] =>
  rules.filter(({ ports }) => ports.some(({ port }: Rendered) => port === wanted))

await t.test('every port of every Service names its protocol, for meshes', WITH_HELM, async (t) => {
  const services = (await render({ 'nats.replicas': 3 })).filter(({ kind }) => kind === 'Service')
  const ports = services.flatMap(({ spec }) => spec.ports)
  t.same(ports.map(({ name, appProtocol }) => `${name} ${appProtocol}`).toSorted(), [
    'cluster tcp',
    'http http',
    'metrics http',
    'nats tcp',
    'nats tcp',
  ])
})

await t.test('the policies let a mesh through, and tell the operator', WITH_HELM, async (t) => {
  for (const replicas of [1, 3]) {
    const objects = await render({ ...MESH, 'nats.replicas': replicas })
    t.ok(operatorArgsOf(objects).includes('--mesh-port=15008'))
    const nats = find(objects, 'NetworkPolicy', 'tutti-nats')['spec']
    t.equal(rulesWith(nats.ingress, 15008).length, replicas === 1 ? 1 : 2)
    t.ok(
      rulesWith(nats.ingress, 15008).every(({ from }) => from.length > 0),
      'from its peers alone',
    )
    const operator = find(objects, 'NetworkPolicy', 'tutti-operator')['spec']
    const test = find(objects, 'NetworkPolicy', 'tutti-test-models')['spec']
    t.equal(rulesWith(test.ingress, 15008).length, 1)
    for (const { egress } of [nats, operator, test]) {
      t.equal(rulesWith(egress, 15008).length, 1)
      t.equal(rulesWith(egress, 53).length, 1)
    }
  }
})

await t.test('without a mesh they name no port of one', WITH_HELM, async (t) => {
  const objects = await render()
  t.same(find(objects, 'NetworkPolicy', 'tutti-nats')['spec'].egress, [])
  t.notOk(operatorArgsOf(objects).some((arg) => arg.startsWith('--mesh-port')))
})
