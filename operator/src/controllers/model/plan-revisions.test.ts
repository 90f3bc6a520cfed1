import type { ControllerRevision, Stored } from '@tutti/kube'
import * as fc from 'fast-check'
import t from 'tap'
import { modelPod, servedModel } from '../../testing/model-world.ts'
import { storedObject } from '../../testing/stored-object.ts'
import {
  byRevision,
  planNewestRevision,
  type Revision,
  type RevisionPlan,
} from '../accepted-revisions.ts'
import type { ModelPod } from './model-pods.ts'
import { findUnused, planWanted, versionsOf, type WantedInput } from './plan-revisions.ts'

const OWNER = { name: 'yolo', uid: 'u', generation: 1 }

interface Planned extends RevisionPlan {
  readonly remove: readonly Revision[]
  /** As the server has them then, the newest first. */
  readonly stored: readonly Revision[]
}

function plan({
  existing = [],
  ...o
}: Partial<WantedInput> & { readonly existing?: readonly Revision[] } = {}): Planned {
  const known = { owner: OWNER, modelName: 'yolo', spec: {}, pods: [] }
  const input = { ...known, isVerified: () => true, ...o }
  const { create, renew } = planNewestRevision(planWanted(input), existing)
  const kept = existing.map((one) =>
    one === renew?.object ? { ...one, revision: renew.revision } : one,
  )
  const made = create.map(
    ({ name, revision, data }) =>
      storedObject(
        { name },
        { kind: 'ControllerRevision', revision, data },
      ) as Stored<ControllerRevision>,
  )
  const all = [...kept, ...made].toSorted(byRevision)
  const remove = findUnused(input.pods, all, 3)
  const stored = all.filter((one) => !remove.includes(one))
  return { create, ...(renew !== undefined && { renew }), remove, stored }
}

const serving = (revision: string, o: Partial<ModelPod> = {}): ModelPod =>
  modelPod(`pod-${revision}`, { model: servedModel(revision), ...o })

await t.test('what pods serve is accepted once, by its content', async (t) => {
  const first = plan({ pods: [serving('r1'), serving('r1')] })
  t.equal(first.create.length, 1)
  t.match(first.create[0], { revision: 1 })
  t.same(first.stored.map(versionsOf), [[{ version: 1, revision: 'r1' }]])
  t.match(first.create[0]?.data, { kind: 'Model', modelName: 'yolo', resource: { generation: 1 } })
  const again = plan({
    existing: first.stored,
    pods: [serving('r1')],
    owner: { ...OWNER, generation: 7 },
  })
  t.same(again.create, [])
  t.equal(again.stored.length, 1)
  const promised = plan({
    existing: first.stored,
    pods: [serving('r1')],
    spec: { mayRunTwice: true },
  })
  t.match(
    promised.create,
    [{ revision: 2, data: { mayRunTwice: true } }],
    'a promise is a part of it',
  )
  const other = plan({ owner: { ...OWNER, uid: 'other' }, pods: [serving('r1')] })
  t.not(other.create[0]?.name, first.create[0]?.name)
})

await t.test(
  'what is of an old template, not ready or not as declared is not accepted',
  async (t) => {
    t.same(plan({ pods: [serving('r1', { isCurrent: false })] }).create, [])
    t.same(plan({ pods: [serving('r1')], isVerified: () => false }).create, [])
    t.same(plan({ pods: [modelPod('a', { status: { phase: 'Running' } })] }).create, [])
    const loading = servedModel('r1', {
      versions: [{ version: 1, revision: 'r1', state: 'LOADING', reason: '' }],
    })
    t.same(plan({ pods: [modelPod('a', { model: loading })] }).create, [])
  },
)

await t.test('what is out of use goes, but for some history', async (t) => {
  let existing: readonly Stored<ControllerRevision>[] = []
  for (const revision of ['r1', 'r2', 'r3', 'r4', 'r5']) {
    existing = plan({ existing, pods: [serving(revision)] }).stored
  }
  t.same(
    existing.map((one) => one.revision),
    [5, 4, 3],
  )
  const old = serving('r3', { isCurrent: false })
  const next = plan({ existing, pods: [old, serving('r6')] })
  t.same(next.remove, [])
  t.equal(plan({ existing: next.stored, pods: [serving('r6')] }).remove.length, 1)
})

await t.test(
  'while a process that may serve anything has not answered, nothing goes',
  async (t) => {
    let existing: readonly Stored<ControllerRevision>[] = []
    for (const revision of ['r1', 'r2', 'r3']) {
      existing = plan({ existing, pods: [serving(revision)] }).stored
    }
    const { model: _, ...silent } = modelPod('silent')
    const result = plan({ existing, pods: [serving('r4'), silent] })
    t.equal(result.create.length, 1)
    t.same(result.remove, [])
  },
)

await t.test('a ControllerRevision that does not parse accepts nothing', async (t) => {
  const broken = storedObject({ name: 'x' }, { revision: 4, data: { kind: 'Model' } })
  const { create } = plan({ existing: [broken], pods: [serving('r1')] })
  t.same(versionsOf(broken), [])
  t.equal(create[0]?.revision, 5)
})

await t.test(
  'whatever pods come and go: what one serves stays accepted, numbers count up',
  async (t) => {
    const step = fc.array(fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g'), {
      minLength: 1,
      maxLength: 3,
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
        let existing: readonly Stored<ControllerRevision>[] = []
        for (const revisions of steps) {
          const result = plan({ existing, pods: revisions.map((one) => serving(one)) })
          existing = result.stored
          const accepted = existing.flatMap(versionsOf).map(({ revision }) => revision)
          if (!revisions.every((one) => accepted.includes(one))) return false
          const numbers = existing.map(({ revision }) => revision)
          if (new Set(numbers).size !== numbers.length) return false
          const again = plan({ existing, pods: revisions.map((one) => serving(one)) })
          const isStill =
            again.create.length + again.remove.length === 0 && again.renew === undefined
          if (!isStill) return false
        }
        return true
      }),
      { numRuns: 50 },
    )
    t.pass()
  },
)
