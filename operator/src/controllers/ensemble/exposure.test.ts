import type { Condition, HttpRoute, ParentReference } from '@tutti/kube'
import t from 'tap'
import { findRouteProblem } from './exposure.ts'

const WANTED = { name: 'edge', namespace: 'infra', sectionName: undefined, routeIn: 'team' }

function condition(
  type: string,
  status: Condition['status'],
  reason: string,
  message = '',
): Condition {
  return { type, status, reason, message, lastTransitionTime: '2026-11-23T00:00:00Z' }
}

const ACCEPTED = [
  condition('Accepted', 'True', 'Accepted'),
  condition('ResolvedRefs', 'True', 'ResolvedRefs'),
]
const REFUSED = [condition('Accepted', 'False', 'NotAllowedByListeners')]

/** A route of which a Gateway says something. */
function route(
  parentRef: ParentReference,
  conditions: readonly Condition[],
): Pick<HttpRoute, 'metadata' | 'status'> {
  return {
    metadata: { name: 'e', namespace: 'team', generation: 2 },
    status: { parents: [{ parentRef, controllerName: 'example.com/gateway', conditions }] },
  }
}

const OURS = { name: 'edge', namespace: 'infra' }

function ofGeneration(observedGeneration: number) {
  return (one: Condition): Condition => ({ ...one, observedGeneration })
}

await t.test('what a Gateway has taken up is no problem', async (t) => {
  t.equal(findRouteProblem(route(OURS, ACCEPTED), WANTED), undefined)
  t.equal(findRouteProblem(route(OURS, ACCEPTED.map(ofGeneration(2))), WANTED), undefined)
  const inTeam = { ...WANTED, namespace: undefined }
  t.equal(findRouteProblem(route({ name: 'edge' }, ACCEPTED), inTeam), undefined)
  t.equal(findRouteProblem(route({ name: 'edge', namespace: 'team' }, ACCEPTED), inTeam), undefined)
  const ofListener = { ...WANTED, sectionName: 'https' }
  t.equal(findRouteProblem(route(OURS, ACCEPTED), ofListener), undefined)
})

await t.test('what no Gateway speaks of waits for one, by its name', async (t) => {
  const other: readonly (readonly [string, Pick<HttpRoute, 'metadata' | 'status'> | undefined])[] =
    [
      ['no route yet', undefined],
      ['no status', { metadata: { name: 'e' } }],
      ['missing', { metadata: { name: 'e' }, status: { parents: [] } }],
      [
        'a Gateway that has not answered',
        route(OURS, [condition('Accepted', 'Unknown', 'Pending')]),
      ],
      ['one that says nothing', route(OURS, [])],
      [
        'one that answered about the route before its edit',
        route(OURS, REFUSED.map(ofGeneration(1))),
      ],
      ['the Gateway that it named before', route({ ...OURS, name: 'before' }, ACCEPTED)],
      ['one of another namespace', route({ name: 'edge' }, REFUSED)],
      ['the listener that it named before', route({ ...OURS, sectionName: 'http' }, REFUSED)],
    ]
  for (const [name, given] of other) {
    const found = findRouteProblem(given, WANTED)
    t.match(found, { reason: 'RoutePending', isAwaited: true }, name)
    t.match(found?.message, /no Gateway "infra\/edge" has taken it up yet/, name)
  }
})

await t.test('what a Gateway refuses is told in its words, and without them', async (t) => {
  t.same(findRouteProblem(route(OURS, REFUSED), WANTED), {
    reason: 'RouteNotAccepted',
    message: 'HTTPRoute: Gateway "infra/edge": NotAllowedByListeners',
  })
  const unresolved = [...ACCEPTED.slice(0, 1), condition('ResolvedRefs', 'False', 'X', 'no one')]
  t.same(findRouteProblem(route(OURS, unresolved), WANTED), {
    reason: 'RouteNotAccepted',
    message: 'HTTPRoute: Gateway "infra/edge": X: no one',
  })
})
