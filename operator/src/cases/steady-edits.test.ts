// needs: apiserver
import { type PlainObject, withoutKube } from '@tutti/kube/testing'
import t, { type Test } from 'tap'
import { type CasePlace, openCaseRig } from '../testing/case-rig.ts'
import { sideBySide } from '../testing/side-by-side.ts'

const skip = withoutKube('kube-controller-manager', 'kube-scheduler')

/** Far more than a pass takes; an operator that waits for a pause never gets anywhere. */
const MOST_EDITS = 1000
/** Of generations that a status is about. */
const ENOUGH = 3

/**
 * Edits without a pause until an object's status has followed, and what hangs on it too.
 *
 * @returns generations of statuses.
 * @throws Error if a status is of an earlier generation than one before.
 */
async function editUntil(
  place: CasePlace,
  path: string,
  o: {
    readonly edit: (index: number) => Promise<PlainObject>
    readonly hasFollowed: () => Promise<boolean>
  },
): Promise<ReadonlySet<number>> {
  const seen = new Set<number>()
  for (let index = 0; index < MOST_EDITS; index += 1) {
    await o.edit(index)
    const { status } = await place.plain.get(path)
    if (status !== undefined) {
      const { observedGeneration: generation } = status
      const latest = Math.max(0, ...seen)
      if (generation < latest) throw new Error(`a status of ${generation} after one of ${latest}`)
      seen.add(generation)
    }
    if (seen.size >= ENOUGH && (await o.hasFollowed())) break
  }
  return seen
}

await t.test('objects that are edited without a pause', { skip }, async (t) => {
  const rig = await openCaseRig(t)
  await sideBySide(t, {
    'the children of a Model follow, and its status says of which generation it is': async (
      t: Test,
    ) => {
      const place = await rig.openPlace()
      await place.startOperator(t)
      const templates = new Set<string>()
      const seen = await editUntil(place, place.path('models', 'yolo'), {
        edit: (index) => place.applyModel('yolo', { maxBatchSize: 1 + (index % 64) }),
        hasFollowed: async () => {
          for (const { spec } of await place.plain.list(place.path('deployments')))
            templates.add(JSON.stringify(spec.template.metadata.annotations))
          return templates.size >= ENOUGH
        },
      })
      t.ok(seen.size >= ENOUGH, `statuses of generations ${[...seen].join()}`)
      t.ok(templates.size >= ENOUGH)
      await place.ready('models', 'yolo')
    },
    'what a Model serves is accepted': async (t: Test) => {
      const place = await rig.openPlace()
      await place.startOperator(t)
      const accepted = async () => {
        const revisions = await place.plain.list(place.path('controllerrevisions'))
        return revisions.length > 0
      }
      await editUntil(place, place.path('models', 'yolo'), {
        edit: (index) => place.applyModel('yolo', { scaling: { maxReplicas: 2 + (index % 32) } }),
        hasFollowed: accepted,
      })
      t.ok(await accepted())
    },
    'edits of an Ensemble are accepted and exposed, and its status says so': async (t: Test) => {
      const place = await rig.openPlace()
      await place.startOperator(t)
      await place.applyModel('yolo')
      await place.ready('models', 'yolo')
      const accepted = new Set<number>()
      const hosts = new Set<string>()
      const seen = await editUntil(place, place.path('ensembles', 'ens'), {
        edit: (index) => {
          const expose = { ingress: { className: 'edge', hosts: [`host-${index}.test`] } }
          return place.applyEnsemble('ens', 'yolo', { timeout: `${1 + (index % 50)}s`, expose })
        },
        hasFollowed: async () => {
          for (const { spec } of await place.plain.list(place.path('ingresses')))
            hosts.add(spec.rules[0].host)
          const { status } = await place.plain.get(place.path('ensembles', 'ens'))
          for (const { generation } of status?.revisions ?? []) accepted.add(generation)
          return accepted.size >= ENOUGH && hosts.size >= ENOUGH
        },
      })
      t.ok(seen.size >= ENOUGH, `statuses of generations ${[...seen].join()}`)
      t.ok(accepted.size >= ENOUGH)
      t.ok(hosts.size >= ENOUGH, 'its Ingress follows')
      await place.ready('ensembles', 'ens')
    },
  })
})
