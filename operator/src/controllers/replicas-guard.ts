import type { Clock } from '@tutti/chassis'
import type { CancelSignal } from '@tutti/errors'
import {
  type Client,
  DEPLOYMENT,
  type Deployment,
  HORIZONTAL_POD_AUTOSCALER,
  type HorizontalPodAutoscaler,
  isForbidden,
  keyOf,
  type Stored,
  unlessNotFound,
} from '@tutti/kube'
import { controllerOf } from '../runtime/children.ts'
import { foreignWriterOf } from '../runtime/replicas-writer.ts'
import type { DeploymentRecord, DeploymentState } from './kept-objects.ts'

/** Another client that writes the replicas of a Deployment, and to which the operator leaves them. */
export interface ReplicasWriter {
  /** Name for messages, e.g. `HorizontalPodAutoscaler "yolo"` or `the field manager "scaler"`. */
  readonly name: string
  /** Milliseconds until the operator looks again whether this client still writes. */
  readonly againMs: number
}

/** Writes the message of a condition: who writes the replicas, and how many there are now. */
export function toWriterText(
  { name }: ReplicasWriter,
  { metadata, spec }: DeploymentState,
): string {
  return `${name} writes the replicas of Deployment "${metadata.name}", ${spec.replicas ?? 1} now, which the operator leaves as they are`
}

export interface FindWriterOptions {
  /** Key of the Deployment's owner, `namespace/name`. */
  readonly key: string
  readonly deployment: Stored<DeploymentRecord> | undefined
  /** Replicas that the operator would write; undefined if it would write none. */
  readonly planned: number | undefined
  readonly signal: CancelSignal
}

export interface ReplicasGuardOptions {
  /** Client that reads Deployments and lists the HPAs of a namespace. */
  readonly client: Pick<Client, 'get' | 'list'>
  readonly clock: Pick<Clock, 'epochMs'>
}

/** How often the operator took the replicas back from one writer, and when it may do so again. */
interface Taken {
  readonly uid: string
  readonly manager: string
  readonly times: number
  readonly againAtMs: number
}

const AGAIN_MS = 60_000
/** Wait after the first time; twice as long after each further one. A person who scales by hand sees it. */
const FIRST_WAIT_MS = 20_000
const LONGEST_WAIT_MS = 3_600_000

/**
 * Keeps the operator and another client from overwriting each other's replicas for ever. If an HPA has the Deployment as its
 * target, the operator leaves the replicas to it. From any other client it takes them back at once the first time. Each further
 * time it waits twice as long, from 20 s up to an hour.
 */
export class ReplicasGuard {
  readonly #options: ReplicasGuardOptions
  readonly #taken = new Map<string, Taken>()
  readonly #left = new Set<string>()

  constructor(o: ReplicasGuardOptions) {
    this.#options = o
  }

  /** Finds the client to which the replicas are left now; undefined if the operator may write `planned`. @throws KubeError */
  async find(o: FindWriterOptions): Promise<ReplicasWriter | undefined> {
    const writer = await this.#find(o)
    if (writer === undefined) this.#left.delete(o.key)
    else this.#left.add(o.key)
    return writer
  }

  /** True if the last call of `find` for this owner left the replicas to another client. */
  isLeft(key: string): boolean {
    return this.#left.has(key)
  }

  /** Forgets an owner that is gone. */
  forget(key: string): void {
    this.#taken.delete(key)
    this.#left.delete(key)
  }

  async #find(o: FindWriterOptions): Promise<ReplicasWriter | undefined> {
    const { key, deployment, planned, signal } = o
    if (planned === undefined || deployment?.spec.replicasBy === undefined) return undefined
    // A cache that is behind would show the writer from whom the last look took them.
    const live = await unlessNotFound(
      this.#options.client.get(DEPLOYMENT, keyOf(deployment), { signal }),
    )
    const manager = live && foreignWriterOf(live)
    if (live === undefined || manager === undefined) return undefined
    const autoscaler = await this.#findAutoscaler(live, signal)
    if (autoscaler !== undefined) {
      const { name } = autoscaler.metadata
      return { name: `HorizontalPodAutoscaler "${name}"`, againMs: AGAIN_MS }
    }
    if (live.spec.replicas === planned) return undefined
    const againMs = this.#waitOf(key, { uid: live.metadata.uid, manager })
    return againMs === 0 ? undefined : { name: `the field manager "${manager}"`, againMs }
  }

  /** Milliseconds until the replicas may be taken back; 0 if they are taken back now. */
  #waitOf(key: string, { uid, manager }: Pick<Taken, 'uid' | 'manager'>): number {
    const nowMs = this.#options.clock.epochMs()
    const known = this.#taken.get(key)
    const isSame = known?.uid === uid && known.manager === manager
    const taken = isSame ? known : { uid, manager, times: 0, againAtMs: nowMs }
    if (nowMs < taken.againAtMs) return taken.againAtMs - nowMs
    // Who was quiet for so long begins anew.
    const times = nowMs - taken.againAtMs > LONGEST_WAIT_MS ? 1 : taken.times + 1
    this.#taken.set(key, { uid, manager, times, againAtMs: nowMs + waitAfter(times) })
    return 0
  }

  /**
   * Finds an HPA of another client whose target is the Deployment; undefined if there is none, or the operator may not see it.
   */
  async #findAutoscaler(
    deployment: Stored<Deployment>,
    signal: CancelSignal,
  ): Promise<Stored<HorizontalPodAutoscaler> | undefined> {
    const { name, namespace } = deployment.metadata
    const owner = controllerOf(deployment)?.uid
    const { items } = await this.#options.client
      .list(HORIZONTAL_POD_AUTOSCALER, { namespace, signal })
      .catch((error: unknown) => {
        if (isForbidden(error)) return { items: [] }
        throw error
      })
    return items.find((one) => {
      const { kind, name: target } = one.spec.scaleTargetRef
      const isOurs = owner !== undefined && controllerOf(one)?.uid === owner
      return kind === 'Deployment' && target === name && !isOurs
    })
  }
}

function waitAfter(times: number): number {
  return Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** (times - 1))
}
