import type { Clock } from '@tutti/chassis'
import { type Client, claimsOf, EVENT, type Event, KubeError, type Stored } from '@tutti/kube'
import { LruMap } from '../runtime/lru-map.ts'
import { areContainersReady, isAlive, type PodState } from './pod-state.ts'

/** A pod that is not ready within this time may wait for something that events alone tell. */
const LATE_MS = 10_000
/** Bounds of the wait before the events of a late pod are read again: a quarter of the time that it has waited. */
const SHORTEST_MS = 10_000
const LONGEST_MS = 120_000
/** Pods of one owner whose events are read: they wait for the same as a rule. */
const MOST_PODS = 2
const MOST_KNOWN = 1024
const TIMEOUT_MS = 5000

interface Known {
  readonly atMs: number
  readonly events: readonly Event[]
}

/**
 * Reads Kubernetes events of pods that are not ready in 10 s, and of the volume claims for which they wait. It does not watch
 * events, because a cluster has more of them than of all other objects.
 */
export class LatePods {
  readonly #client: Pick<Client, 'list'>
  readonly #clock: Pick<Clock, 'epochMs'>
  /** Events that were read last, by the uid of the pod. */
  readonly #known = new LruMap<Known>(MOST_KNOWN)

  constructor(o: {
    readonly client: Pick<Client, 'list'>
    readonly clock: Pick<Clock, 'epochMs'>
  }) {
    this.#client = o.client
    this.#clock = o.clock
  }

  /** Reads the events of the first two late pods, in the order of the pods. It returns none if they cannot be read. */
  async eventsOf(
    pods: readonly Stored<PodState>[],
    { signal }: { readonly signal: AbortSignal },
  ): Promise<readonly Event[]> {
    const nowMs = this.#clock.epochMs()
    const late = pods.filter((pod) => lateForMs(pod, nowMs) !== undefined).slice(0, MOST_PODS)
    const found = await Promise.all(late.map((pod) => this.#eventsOf(pod, signal)))
    return found.flat()
  }

  async #eventsOf(pod: Stored<PodState>, signal: AbortSignal): Promise<readonly Event[]> {
    const { uid } = pod.metadata
    const nowMs = this.#clock.epochMs()
    const known = this.#known.get(uid)
    if (known !== undefined && nowMs - known.atMs < SHORTEST_MS / 2) return known.events
    const events = await this.#read(pod, signal)
    this.#known.set(uid, { atMs: nowMs, events })
    return events
  }

  async #read(pod: Stored<PodState>, signal: AbortSignal): Promise<readonly Event[]> {
    const { namespace, uid } = pod.metadata
    const claims = pod.spec.nodeName === undefined ? claimsOf(pod) : []
    const selectors = [
      `regarding.uid=${uid}`,
      ...claims.map((name) => `regarding.kind=PersistentVolumeClaim,regarding.name=${name}`),
    ]
    try {
      const lists = await Promise.all(
        selectors.map((fieldSelector) =>
          this.#client.list(EVENT, { namespace, fieldSelector, signal, timeoutMs: TIMEOUT_MS }),
        ),
      )
      return lists.flatMap(({ items }) => items)
    } catch (error) {
      // They only say more: without a right to them, and while they do not come, the status of the pod has to do.
      if (error instanceof KubeError) return []
      throw error
    }
  }
}

/** Computes the milliseconds until events of late pods may tell more; undefined if all pods are ready or have ended. Pure. */
export function toLatePodsDelayMs(
  pods: readonly Stored<PodState>[],
  nowMs: number,
): number | undefined {
  const waits = pods.flatMap((pod) => {
    const sinceMs = waitsSinceMs(pod)
    return sinceMs === undefined ? [] : [nowMs - sinceMs]
  })
  if (waits.length === 0) return undefined
  const delays = waits.map((waitedMs) =>
    waitedMs < LATE_MS
      ? LATE_MS - waitedMs
      : Math.min(LONGEST_MS, Math.max(SHORTEST_MS, waitedMs / 4)),
  )
  return Math.max(1000, Math.min(...delays))
}

function lateForMs(pod: Stored<PodState>, nowMs: number): number | undefined {
  const sinceMs = waitsSinceMs(pod)
  return sinceMs === undefined || nowMs - sinceMs < LATE_MS ? undefined : nowMs - sinceMs
}

/** Tells when the containers of a pod were last ready, or it was made; undefined if they are ready, or are no longer to be. */
function waitsSinceMs(pod: Stored<PodState>): number | undefined {
  if (!isAlive(pod) || areContainersReady(pod)) return undefined
  const condition = pod.status?.conditions?.find(({ type }) => type === 'ContainersReady')
  const { creationTimestamp } = pod.metadata
  const times = [condition?.lastTransitionTime, creationTimestamp].map((at) => Date.parse(at ?? ''))
  const known = times.filter((ms) => !Number.isNaN(ms))
  return known.length === 0 ? undefined : Math.max(...known)
}
