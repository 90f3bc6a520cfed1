import {
  CONFIG_MAP,
  DEPLOYMENT,
  NETWORK_POLICY,
  POD_DISRUPTION_BUDGET,
  type Resource,
  ROLE,
  ROLE_BINDING,
  SECRET,
  SERVICE,
  SERVICE_ACCOUNT,
} from '@tutti/kube'
import t from 'tap'
import { ROUTER_KINDS } from '../../resources/build-router-set.ts'
import { storedObject } from '../../testing/stored-object.ts'
import { outOfUse } from './out-of-use.ts'

const found = (kinds: readonly Resource[]) =>
  kinds.map((resource) => ({ resource, object: storedObject({ name: 'old' }, {}) }))

/** What is refused, and which kinds nothing uses then. */
const CASES: readonly (readonly [readonly Resource[], readonly Resource[]])[] = [
  [[], ROUTER_KINDS],
  [[DEPLOYMENT], [NETWORK_POLICY]],
  [
    [SERVICE],
    [
      SERVICE_ACCOUNT,
      ROLE,
      ROLE_BINDING,
      SECRET,
      NETWORK_POLICY,
      POD_DISRUPTION_BUDGET,
      DEPLOYMENT,
    ],
  ],
  [[ROLE_BINDING], [SECRET, NETWORK_POLICY, SERVICE, POD_DISRUPTION_BUDGET, DEPLOYMENT]],
  [[DEPLOYMENT, NETWORK_POLICY], []],
]

await t.test(
  'what is not wanted goes unless something that could not be made leaves it in use',
  async (t) => {
    for (const [missing, wanted] of CASES) {
      const kinds = outOfUse(found(ROUTER_KINDS), missing).map(({ resource }) => resource.kind)
      const names = missing.map(({ kind }) => kind).join()
      t.same(
        kinds,
        wanted.map(({ kind }) => kind),
        names,
      )
    }
  },
)

await t.test('a kind of which nothing is known stays while anything is missing', async (t) => {
  t.same(outOfUse(found([CONFIG_MAP]), [SERVICE]), [])
})
