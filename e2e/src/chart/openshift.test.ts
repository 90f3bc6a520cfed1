// needs: apiserver
import { withoutKube } from '@tutti/kube/testing'
import t from 'tap'
import { operatorArgsOf, type Rendered, render } from './helm.ts'

const WITH_HELM = { skip: withoutKube('helm') }

const ADAPT = 'global.compatibility.openshift.adaptSecurityContext'
const OPENSHIFT = '--api-versions=security.openshift.io/v1'
const FLAG = '--namespace-assigns-user=true'

/** The security contexts of all pods of the chart. */
function securityOf(objects: readonly Rendered[]): Rendered[] {
  return objects.flatMap(({ spec }) => spec?.template?.spec.securityContext ?? [])
}

const isFixed = (context: Rendered): boolean =>
  /"(runAs(User|Group)|fsGroup)"/.test(JSON.stringify(context))

await t.test(
  'pods name no user where OpenShift assigns one, or where it is forced',
  WITH_HELM,
  async (t) => {
    const cases = { auto: [OPENSHIFT], force: [] }
    for (const [value, args] of Object.entries(cases)) {
      const objects = await render({ [ADAPT]: value }, ...args)
      const contexts = securityOf(objects)
      t.equal(contexts.length, 4, 'operator, NATS, and both pods of the test')
      t.notOk(contexts.some(isFixed), value)
      for (const context of contexts) {
        t.match(context, { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } })
      }
      t.ok(operatorArgsOf(objects).includes(FLAG), value)
    }
  },
)

await t.test('they name their own elsewhere, and where that is disabled', WITH_HELM, async (t) => {
  const cases = { auto: [], disabled: [OPENSHIFT] }
  for (const [value, args] of Object.entries(cases)) {
    const objects = await render({ [ADAPT]: value }, ...args)
    t.ok(securityOf(objects).every(isFixed), value)
    t.notOk(operatorArgsOf(objects).includes(FLAG), value)
  }
})

await t.test('OpenShift’s DNS, whose pods have another port, is reached', WITH_HELM, async (t) => {
  // Pods of `helm test` look up names without a policy.
  const values = { 'nats.replicas': 3, 'tests.enabled': false }
  const policies = (await render(values)).filter(({ kind }) => kind === 'NetworkPolicy')
  t.equal(policies.length, 2)
  for (const { spec } of policies)
    t.match(JSON.stringify(spec.egress), '{"port":5353,"protocol":"UDP"}')
})
