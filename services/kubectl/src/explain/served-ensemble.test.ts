import type { ControllerRevision, JsonObject, Stored } from '@tutti/kube'
import t from 'tap'
import type { EnsembleObject } from '../resources.ts'
import { servedOf, unservedOf } from './served-ensemble.ts'

const meta = (name: string, more: object = {}) => ({
  name,
  uid: `uid-${name}`,
  resourceVersion: '1',
  creationTimestamp: '',
  ...more,
})

function ensemble(condition?: object): Stored<EnsembleObject> {
  const conditions =
    condition === undefined
      ? []
      : [{ type: 'Accepted', message: 'm', lastTransitionTime: '', ...condition }]
  return {
    apiVersion: 'tutti.dev/v1alpha1',
    kind: 'Ensemble',
    metadata: meta('e', { generation: 3 }),
    // The conditions are of whichever operator.
    status: { conditions } as unknown as NonNullable<EnsembleObject['status']>,
  }
}

function revision(
  number: number,
  o: { data?: JsonObject; owner?: string } = {},
): Stored<ControllerRevision> {
  const { data = accepted(number), owner = 'uid-e' } = o
  const ownerReferences = [{ apiVersion: 'x', kind: 'Ensemble', name: 'e', uid: owner }]
  return {
    apiVersion: 'apps/v1',
    kind: 'ControllerRevision',
    metadata: meta(`r${number}`, { ownerReferences }),
    revision: number,
    data,
  }
}

const accepted = (generation: number): JsonObject => ({
  kind: 'Ensemble',
  modelName: 'e',
  resource: { name: 'e', uid: 'uid-e', generation },
  config: { name: 'e', ensembleScheduling: { step: [] } },
  graph: { steps: [], outputs: [], maxInFlightPerStep: 0 },
  models: {},
})

await t.test('the newest accepted state that can be read is what routers serve', (t) => {
  const newer = { data: { kind: 'Ensemble', modelName: 7 } }
  const others = [revision(9, { owner: 'uid-other' }), revision(8, newer)]
  t.match(servedOf(ensemble(), [revision(1), ...others, revision(2)]), {
    revision: 'r2',
    accepted: { resource: { generation: 2 } },
  })
  t.equal(servedOf(ensemble(), []), undefined)
  t.throws(() => servedOf(ensemble(), [revision(8, newer)]), {
    reason: 'MALFORMED_MESSAGE',
    message: /modelName/,
  })
  t.end()
})

await t.test('an edit that is not served says why', (t) => {
  const of = (observedGeneration: number, status: string, reason: string) =>
    unservedOf(ensemble({ observedGeneration, status, reason }))
  t.equal(of(3, 'True', 'Accepted'), undefined)
  t.same(of(3, 'False', 'UnknownTensor'), { generation: 3, reason: 'UnknownTensor', message: 'm' })
  t.match(of(3, 'Unknown', 'Paused'), { reason: 'Paused' })
  t.match(of(2, 'True', 'Accepted'), { generation: 3, reason: 'NotObserved' })
  t.match(unservedOf(ensemble()), { reason: 'NotObserved' })
  t.end()
})
