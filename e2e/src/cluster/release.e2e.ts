import type { PlainObject } from '@tutti/kube/testing'
import t from 'tap'
import { getObject, kubectl, NODE_ADDRESS, withoutCluster, withoutTuttiImages } from './kubectl.ts'
import { helm, install, KEPT, leftovers, removeAfter, SYSTEM, uninstall } from './release.ts'

t.setTimeout(1_200_000)

const CRDS = ['models', 'ensembles', 'routers'].map((plural) => `${plural}.tutti.dev`)

/** What another cluster has already that this test would take away. */
async function findOthers(): Promise<readonly string[]> {
  const lists = await Promise.all(
    ['customresourcedefinitions', 'namespaces'].map((k) => getObject(k)),
  )
  const names = lists.flatMap(({ items }) =>
    items.map(({ metadata }: PlainObject) => metadata.name),
  )
  return names.filter((name) => [...CRDS, SYSTEM].includes(name))
}

const skip = withoutTuttiImages(withoutCluster())
await t.test('the release, on any cluster', { skip }, async (t) => {
  if (NODE_ADDRESS === undefined) {
    const others = await findOthers()
    if (others.length > 0) {
      throw new Error(`the cluster has ${others.join(', ')}; want one without a Tutti of its own`)
    }
    t.teardown(() => kubectl('delete', 'customresourcedefinitions', '--ignore-not-found', ...CRDS))
  }
  removeAfter(t)

  await t.test('helm installs it', async (t) => {
    t.match(await install(), /STATUS: deployed/)
  })

  await t.test('helm test serves an ensemble of two steps and asks it', async (t) => {
    t.match(await helm('test', 'tutti', '--timeout=5m'), /Phase: +Succeeded/)
  })

  await t.test('helm uninstalls it, and only the keys of NATS stay', async (t) => {
    await uninstall()
    const pods = ['pods', '--all', `--namespace=${SYSTEM}`]
    await kubectl('wait', '--for=delete', '--timeout=300s', ...pods)
    t.same(await leftovers(), KEPT)
  })
})
