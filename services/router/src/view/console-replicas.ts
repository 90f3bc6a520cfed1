import type { PinnedVersion, ServedModel } from '@tutti/api'
import type { ConsoleReplica, ReplicaVersion } from '@tutti/console'
import type { ForeignMember, KnownReplica, StepDirectory } from '@tutti/transport'
import type { StepMembers } from './step-members.ts'

export interface KnownMembers {
  readonly members: Pick<StepMembers, 'all' | 'offers'>
  readonly directory: Pick<StepDirectory, 'find'>
  readonly foreign: readonly ForeignMember[]
  /** Tells how a replica is reached. */
  readonly reachedOver: (replica: string) => string
}

const IDLE = 'no new requests go there: it drains, or this revision was not accepted'
const FOREIGN = 'the replica shares no version of the protocol with this router'

/** Lists the replicas that know some of the models, whether they serve them or not, as this router sees them. */
export function listReplicas(
  models: ReadonlySet<string>,
  { members, directory, foreign, reachedOver }: KnownMembers,
): readonly ConsoleReplica[] {
  const known = members.all.flatMap(({ replica, host, models: described }): ConsoleReplica[] => {
    const wanted = described.filter(({ name }) => models.has(name))
    if (wanted.length === 0) return []
    const isUsed = (pin: PinnedVersion): boolean => members.offers(replica, pin)
    const versions = wanted.flatMap((model) => versionsOf(model, isUsed))
    const state = stateOf(directory.find(replica))
    return [{ replica, host, ...state, reachedOver: reachedOver(replica), versions }]
  })
  const others = foreign.flatMap(({ member: replica, models: served }): ConsoleReplica[] => {
    const versions = served.filter((name) => models.has(name)).map((name) => without(name, FOREIGN))
    const state = { ...stateOf(undefined), state: 'other protocol' } as const
    return versions.length === 0 ? [] : [{ replica, host: '', ...state, reachedOver: '', versions }]
  })
  return [...known, ...others]
}

function stateOf(
  known: KnownReplica | undefined,
): Pick<ConsoleReplica, 'state' | 'inFlight' | 'load'> {
  const { inFlight = 0, load } = known ?? {}
  const state = known?.isSuspect ? 'suspect' : known?.isDraining ? 'draining' : 'taking work'
  if (load === undefined) return { state, inFlight, load }
  return { state, inFlight, load: { inFlight: load.inFlight, queued: load.queued } }
}

function versionsOf(
  { name: model, versions, reason }: ServedModel,
  isUsed: (pin: PinnedVersion) => boolean,
): readonly ReplicaVersion[] {
  if (versions.length === 0) return [without(model, reason)]
  return versions.map(({ version, revision, state, reason: why }) => {
    const own = { model, version: String(version), revision }
    const isIdle = state === 'READY' && !isUsed({ model, version, revision })
    return isIdle ? { ...own, state: 'IDLE', reason: IDLE } : { ...own, state, reason: why }
  })
}

function without(model: string, reason: string): ReplicaVersion {
  return { model, version: '', revision: '', state: 'UNAVAILABLE', reason }
}
