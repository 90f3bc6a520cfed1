import type { PlainObject } from '@tutti/kube/testing'
import type { Test } from 'tap'
import { type CaseRig, openCaseRig } from '../case-rig.ts'
import { toServedRevision } from './served-revision.ts'
import { ACCEPTED, type Verdicts, verdictOf } from './verdict.ts'

export interface JudgedSet {
  readonly seed: number
  readonly manifests: readonly PlainObject[]
  readonly wanted: Verdicts
}

/**
 * Applies each set to a namespace of its own, and compares what one operator for all says of each Ensemble, once it is at rest,
 * with what is wanted. There are no pods: what Models serve is written for them.
 */
export async function judgeOnServer(t: Test, sets: readonly JudgedSet[]): Promise<void> {
  const rig = await openCaseRig(t, { hasControllers: false })
  await rig.server.plain.create('/api/v1/namespaces', { metadata: { name: 'system' } })
  const operator = await rig.startOperator(t, { system: 'system' })
  const placed = sets.map((set, i) => ({ ...set, namespace: `ns-${i}` }))
  await Promise.all(placed.map((set) => applySet(rig, set)))
  await operator.atRest()
  for (const set of placed) await compareSet(t, rig, set)
}

interface PlacedSet extends JudgedSet {
  readonly namespace: string
}

async function applySet({ server }: CaseRig, { namespace, manifests }: PlacedSet): Promise<void> {
  const { plain } = server
  await plain.create('/api/v1/namespaces', { metadata: { name: namespace } })
  // In the order in which those of one second have their names, as a second may pass meanwhile.
  const ordered = manifests.toSorted((one, other) => (idOf(one) < idOf(other) ? -1 : 1))
  for (const manifest of ordered) {
    const made = await plain.create(collectionOf(namespace, manifest), manifest)
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a Model, as the server answered
    const revision = manifest['kind'] === 'Model' ? toServedRevision(made as never) : undefined
    if (revision === undefined) continue
    await plain.create(`/apis/apps/v1/namespaces/${namespace}/controllerrevisions`, { ...revision })
  }
}

async function compareSet(t: Test, { server }: CaseRig, set: PlacedSet): Promise<void> {
  const { seed, namespace, manifests, wanted } = set
  for (const manifest of manifests.filter(({ kind }) => kind === 'Ensemble')) {
    const path = `${collectionOf(namespace, manifest)}/${manifest['metadata'].name}`
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- an Ensemble, as the server has it
    const said = verdictOf((await server.plain.get(path)) as never)
    t.same(said, wanted.get(idOf(manifest)) ?? ACCEPTED, `seed ${seed}: ${idOf(manifest)}`)
  }
}

function collectionOf(namespace: string, { kind }: PlainObject): string {
  return `/apis/tutti.dev/v1alpha1/namespaces/${namespace}/${kind === 'Model' ? 'models' : 'ensembles'}`
}

function idOf({ kind, metadata }: PlainObject): string {
  return `${kind}/${metadata.name}`
}
