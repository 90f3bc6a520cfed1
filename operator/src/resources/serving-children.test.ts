import t from 'tap'
import { stepSettings } from '../testing/step-settings.ts'
import { buildNetworkPolicy } from './serving-children.ts'

const SET = { metadata: { name: 'a', namespace: 'ns' }, selector: { app: 'a' } }
const CLIENTS = [{ namespaceSelector: { matchLabels: { team: 'clients' } } }]

/** The rule of the port that a mesh has in the pods. */
function meshRule(openPorts: readonly number[]) {
  const network = { ...stepSettings().network, meshPorts: [15_008] }
  const { spec } = buildNetworkPolicy(SET, { network, clients: CLIENTS, openPorts })
  return spec?.ingress?.find(({ ports }) => ports?.some(({ port }) => port === 15_008))
}

await t.test('who may call a pod may do so through a mesh', async (t) => {
  const rule = meshRule([])
  t.same(rule?.ports, [{ port: 15_008, protocol: 'TCP' }])
  t.match(rule?.from, [{ podSelector: {} }, { podSelector: {} }, ...CLIENTS])
  t.same(meshRule([9000])?.from, undefined, 'everyone, where a port is open to everyone')
})

await t.test('without a mesh no policy names its ports', async (t) => {
  const { network } = stepSettings()
  const { spec } = buildNetworkPolicy(SET, { network })
  t.equal(spec?.ingress?.length, 2)
})
