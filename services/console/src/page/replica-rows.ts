import type { Replicas, ShownReplica } from '../api/replica.ts'
import { countRates, type Rates } from './rates.ts'

/** The replicas that one answer names, and its time. */
export interface Reading {
  readonly atMs: number
  readonly replicas: Replicas
}

/** One row of the table of replicas: a replica of a step. */
export interface ReplicaRow {
  /** Name of the step; '' for a model. */
  readonly step: string
  readonly replica: ShownReplica
  /** Versions of the step's model. */
  readonly versions: ShownReplica['versions']
  /** Rates of the step at this replica; undefined without two readings. */
  readonly rates: Rates | undefined
  /** True if the replica was in the reading before, and is no longer there. */
  readonly isGone: boolean
}

const NONE = { requests: 0, failures: 0, queueMs: 0, transferMs: 0, computeMs: 0 }

/** Makes the rows of all replicas, in the order of the steps. A replica that only the reading before had is marked as gone. */
export function replicaRows(o: {
  readonly steps: readonly { readonly name: string; readonly model: string }[]
  readonly now: Reading
  readonly before: Reading | undefined
}): readonly ReplicaRow[] {
  const { steps, now, before } = o
  const there = new Set(now.replicas.all.map(({ replica }) => replica))
  const earlier = new Map(before?.replicas.all.map((one) => [one.replica, one]))
  const isCut = now.replicas.leftOut > 0
  const gone = isCut ? [] : [...earlier.values()].filter(({ replica }) => !there.has(replica))
  const elapsedMs = now.atMs - (before?.atMs ?? now.atMs)
  return steps.flatMap(({ name: step, model }) =>
    [...now.replicas.all, ...gone].flatMap((replica): ReplicaRow[] => {
      const versions = replica.versions.filter((one) => one.model === model)
      if (versions.length === 0) return []
      const isGone = !there.has(replica.replica)
      const was = earlier.get(replica.replica)
      const rates =
        isGone || was === undefined ? undefined : ratesOf(replica, was, { step, elapsedMs })
      return [{ step, replica, versions, rates, isGone }]
    }),
  )
}

const MOST_PODS = 20
/** Form of the names of pods: what steps say of themselves is not trusted in a line that people copy into a shell. */
const POD_NAME = /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/

/** Makes the command that shows the nodes of the replicas' pods, at most 20; undefined without pods. */
export function podsCommand(
  namespace: string,
  rows: readonly Pick<ReplicaRow, 'replica' | 'isGone'>[],
): string | undefined {
  const there = rows.filter(({ isGone }) => !isGone).map(({ replica }) => replica.host)
  const pods = [...new Set(there)].filter((host) => POD_NAME.test(host)).slice(0, MOST_PODS)
  if (pods.length === 0 || !POD_NAME.test(namespace)) return undefined
  return `kubectl get pods --namespace ${namespace} --output wide ${pods.join(' ')}`
}

/** Counts begin when the page is opened, and what is not counted yet is none. */
function ratesOf(
  now: ShownReplica,
  before: ShownReplica,
  { step, elapsedMs }: { readonly step: string; readonly elapsedMs: number },
): Rates | undefined {
  const of = ({ totals }: ShownReplica) => totals.find((one) => one.step === step) ?? NONE
  const [to, from] = [of(now), of(before)]
  const rates = countRates({ ...to, requestMs: 0 }, { ...from, requestMs: 0 }, elapsedMs)
  return (
    rates && {
      ...rates,
      transferMs: (to.transferMs - from.transferMs) / (to.requests - from.requests),
    }
  )
}
