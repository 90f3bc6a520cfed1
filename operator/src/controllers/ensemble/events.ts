import type { EnsembleStatus } from '@tutti/ensemble'
import type { Stored } from '@tutti/kube'
import type { EnsembleObject } from '../../api/kinds.ts'
import { findCondition } from '../../runtime/conditions.ts'
import { distinct, type EventInput } from '../../runtime/events.ts'

type Ensemble = Stored<EnsembleObject>

/** Routers execute something else from now on. */
export function revisionAccepted(regarding: Ensemble, name: string): EventInput {
  const note = `accepted as ControllerRevision "${name}"`
  return { regarding, type: 'Normal', reason: 'RevisionAccepted', action: 'Accept', note }
}

/** Something in the manifest is odd, and it is accepted all the same. */
export function hasWarning(regarding: Ensemble, note: string): EventInput {
  return { regarding, type: 'Warning', reason: 'Warning', action: 'Judge', note }
}

/** Requests are answered from now on. */
function becameReady(regarding: Ensemble): EventInput {
  const note = 'requests are answered'
  return { regarding, type: 'Normal', reason: 'Ready', action: 'Serve', note }
}

/** What a change of the status is worth telling: readiness, and a verdict or an exposure that went bad. */
export function eventsOfChange(
  regarding: Ensemble,
  before: EnsembleStatus | undefined,
  after: EnsembleStatus,
): readonly EventInput[] {
  const bad = BAD.flatMap(([type, status]): EventInput[] => {
    const now = findCondition(after.conditions, type)
    if (now?.status !== status || QUIET.has(now.reason)) return []
    if (isSame(findCondition(before?.conditions, type), now)) return []
    const { reason, message: note } = now
    return [{ regarding, type: 'Warning', reason, action: 'Judge', note }]
  })
  const isReady = findCondition(after.conditions, 'Ready')?.status === 'True'
  const wasReady = findCondition(before?.conditions, 'Ready')?.status === 'True'
  const told = distinct(bad)
  return isReady && !wasReady ? [becameReady(regarding), ...told] : told
}

const BAD = [
  ['Accepted', 'False'],
  ['Degraded', 'True'],
] as const

/** They heal by themselves, or are told by another condition, or once where they are wrong. */
const QUIET: ReadonlySet<string> = new Set([
  'SchemaPending',
  'Pending',
  'EarlierGenerationServed',
  'RouterSettingsInvalid',
])

type Found = NonNullable<EnsembleStatus['conditions']>[number] | undefined

function isSame(one: Found, other: Found): boolean {
  return (
    one?.status === other?.status &&
    one?.reason === other?.reason &&
    one?.message === other?.message
  )
}
