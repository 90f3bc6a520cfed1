// needs: apiserver
import { withoutKube } from '@tutti/kube/testing'
import t from 'tap'
import { find, namesOf, operatorArgsOf, render, template } from './helm.ts'

const WITH_HELM = { skip: withoutKube('helm') }

const NATS_OBJECTS = [
  'ConfigMap tutti-nats',
  'NetworkPolicy tutti-nats',
  'Service tutti-nats',
  'Service tutti-nats-headless',
  'ServiceAccount tutti-nats',
  'StatefulSet tutti-nats',
]

const ACCOUNTS_OBJECTS = NATS_OBJECTS.map((name) =>
  name.replace('tutti-nats', 'tutti-nats-accounts'),
)

await t.test(
  'servers without accounts stay as they are beside those with',
  WITH_HELM,
  async (t) => {
    const before = await render({ 'nats.replicas': 3, 'nats.accounts.enabled': false })
    const now = await render({ 'nats.replicas': 3, 'nats.accounts.former': 'keep' })
    for (const name of NATS_OBJECTS) {
      const [kind = '', object = ''] = name.split(' ')
      t.same(find(now, kind, object), find(before, kind, object), name)
    }
    const args = operatorArgsOf(now)
    for (const wanted of [
      '--nats=tls://tutti-nats-accounts.tutti-system.svc:4222',
      '--nats-cluster-host=tutti-nats-accounts-2.tutti-nats-accounts-headless.tutti-system.svc:6222',
      '--nats-accounts',
      '--nats-connections-per-namespace=96',
      '--nats-former=nats://tutti-nats.tutti-system.svc:4222',
      '--nats-former-cluster-host=tutti-nats-2.tutti-nats-headless.tutti-system.svc:6222',
    ]) {
      t.ok(args.includes(wanted), wanted)
    }
  },
)

function numberOf(pattern: RegExp, text: string): number {
  return Number(pattern.exec(text)?.[1])
}

await t.test(
  'a namespace that fills all of its connections fits the memory of a server',
  WITH_HELM,
  async (t) => {
    const objects = await render()
    const args = operatorArgsOf(objects).join('\n')
    const config = find(objects, 'ConfigMap', 'tutti-nats-accounts')['data']['nats.conf']
    const { spec } = find(objects, 'StatefulSet', 'tutti-nats-accounts')['spec'].template
    const [container] = spec.containers
    const connections = numberOf(/per-namespace=(\d+)/, args.replace(/subscriptions\S+/, ''))
    const pendingMi = numberOf(/max_pending: (\d+)MB/, config)
    const goLimit = container.env.find((one: { name: string }) => one.name === 'GOMEMLIMIT').value
    const goLimitMi = numberOf(/^(\d+)MiB$/, goLimit)
    const limitMi = numberOf(/^(\d+)Mi$/, container.resources.limits.memory)
    // Code, accounts and connections; and twenty other namespaces, each with a connection that is behind.
    const most = connections * pendingMi + 20 * pendingMi + 128
    t.ok(most <= goLimitMi, `${most} MiB, GOMEMLIMIT ${goLimitMi} MiB`)
    // What is allocated and not in use, and what the program has beside its heap: 1.25 times as measured.
    t.ok(goLimitMi * 1.25 <= limitMi, `${goLimitMi} MiB, limit ${limitMi} MiB`)
  },
)

await t.test(
  'servers with accounts come beside the others, or in their place',
  WITH_HELM,
  async (t) => {
    const shared = namesOf(await render({ 'nats.accounts.enabled': false }))
    const changes = async (former: string): Promise<readonly string[]> => {
      const now = namesOf(await render({ 'nats.accounts.former': former }))
      return [
        ...now.filter((name) => !shared.includes(name)).map((name) => `+${name}`),
        ...shared.filter((name) => !now.includes(name)).map((name) => `-${name}`),
      ].toSorted()
    }
    const made = ACCOUNTS_OBJECTS.map((name) => `+${name}`)
    const moved = [...made, ...NATS_OBJECTS.map((name) => `-${name}`)]
    t.same(await changes('keep'), made)
    t.same(await changes('remove'), moved)
    t.same(await changes(''), moved, 'where there are none')
  },
)

/** Objects that Helm does not delete, beside the CRDs. */
async function keptOf(former: string): Promise<readonly string[]> {
  const objects = await render({ 'nats.accounts.former': former, 'nats.replicas': 3 })
  const kept = objects.filter(
    ({ kind, metadata }) =>
      kind !== 'CustomResourceDefinition' &&
      metadata.annotations?.['helm.sh/resource-policy'] === 'keep',
  )
  return namesOf(kept)
}

await t.test('while both run, a rollback deletes neither', WITH_HELM, async (t) => {
  t.same(await keptOf('keep'), [
    ...ACCOUNTS_OBJECTS.slice(0, 2),
    'PodDisruptionBudget tutti-nats-accounts',
    ...ACCOUNTS_OBJECTS.slice(2),
  ])
  t.same(await keptOf('remove'), [])
})

await t.test('what cannot look at the cluster has to say what to do', WITH_HELM, async (t) => {
  // As Argo CD says what the cluster has.
  const there = '--api-versions=tutti.dev/v1alpha1'
  const { code, err } = await template({}, there)
  t.not(code, 0)
  t.match(err, 'nats.accounts.former: got nothing, and what renders the chart cannot look')
  for (const former of ['keep', 'remove']) {
    t.match(await template({ 'nats.accounts.former': former }, there), { code: 0 })
  }
  t.match(await template({ 'nats.accounts.enabled': false }, there), { code: 0 })
})
