import type { ServedModel } from '@tutti/ensemble'
import { ServeError } from '@tutti/errors'
import type { Pod, Stored } from '@tutti/kube'
import type { PodClient } from '../../pods/pod-client.ts'
import { addressOf, areContainersReady, mainStatusOf } from '../../pods/pod-state.ts'
import { isOfTemplate, type ModelPod } from './model-pods.ts'

interface Known {
  /** Of the process that said it. */
  readonly containerId: string
  readonly model: ServedModel
}

export interface ObserveOptions {
  /** What clients call the model. */
  readonly modelName: string
  /** Digest of the pod template that is wanted. */
  readonly template: string | undefined
  readonly signal: AbortSignal
}

/**
 * Asks pods what they serve of a model. What a process says once it is ready stays true for as long as it lives, as it loads
 * nothing on request: it is asked once.
 */
export class PodObserver {
  readonly #client: PodClient
  /** By uid of the pod. */
  readonly #known = new Map<string, Known>()

  constructor(client: PodClient) {
    this.#client = client
  }

  /** @throws the signal's reason if it aborts; a pod that does not answer is told in its place. */
  async observe(pods: readonly Stored<Pod>[], o: ObserveOptions): Promise<readonly ModelPod[]> {
    const sorted = pods.toSorted((one, other) => (one.metadata.name < other.metadata.name ? -1 : 1))
    const observed = await Promise.all(sorted.map((pod) => this.#observe(pod, o)))
    o.signal.throwIfAborted()
    return observed
  }

  /** The pod is gone. */
  forget(uid: string): void {
    this.#known.delete(uid)
  }

  async #observe(pod: Stored<Pod>, o: ObserveOptions): Promise<ModelPod> {
    const isCurrent = isOfTemplate(pod, o.template)
    const { uid } = pod.metadata
    const main = mainStatusOf(pod)
    const address = addressOf(pod)
    const containerId = main?.containerID ?? ''
    const known = this.#known.get(uid)
    if (known?.containerId === containerId) return { pod, isCurrent, model: known.model }
    if (main?.state?.running === undefined || address === undefined) return { pod, isCurrent }
    try {
      const { models } = await this.#client.servedByStep(address, o)
      const model = models.find(({ name }) => name === o.modelName)
      if (model === undefined) return { pod, isCurrent }
      if (areContainersReady(pod)) this.#known.set(uid, { containerId, model })
      return { pod, isCurrent, model }
    } catch (error) {
      return { pod, isCurrent, error: ServeError.from(error) }
    }
  }
}
