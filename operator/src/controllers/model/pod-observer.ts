import type { ServedModel, StartProgress } from '@tutti/api'
import { ServeError } from '@tutti/errors'
import type { Stored } from '@tutti/kube'
import type { PodAddress, PodClient } from '../../pods/pod-client.ts'
import {
  areContainersReady,
  isFetching,
  mainStatusOf,
  type PodState,
  podAddressOf,
} from '../../pods/pod-state.ts'
import { isOfTemplate, type ModelPod } from './model-pods.ts'

interface Known {
  /** ID of the container whose process said it. */
  readonly containerId: string
  readonly model: ServedModel
}

type Answer =
  | { readonly models: readonly ServedModel[]; readonly error?: undefined }
  | { readonly error: ServeError; readonly models?: undefined }

export interface ObserveOptions {
  /** The name by which clients call the model. */
  readonly modelName: string
  /** Digest of the desired pod template. */
  readonly template: string | undefined
  readonly signal: AbortSignal
}

type AskingClient = Pick<PodClient, 'servedByStep' | 'startOfStep'>

/**
 * Asks pods which versions of a model they serve, and those that do not serve yet how far they are. The answer of a ready process is kept until its container ends, because a step
 * loads nothing on request.
 */
export class PodObserver {
  readonly #client: AskingClient
  /** Last answers of each pod, by its uid and by the name of the model. */
  readonly #known = new Map<string, Map<string, Known>>()
  /** Uids of pods that were asked the last time, and did not answer. */
  readonly #silent = new Set<string>()
  /** The questions to pods that are asked now, and are not gone, by uid. */
  readonly #asking = new Map<string, Set<object>>()

  constructor(client: AskingClient) {
    this.#client = client
  }

  /**
   * Asks all pods that run and have not given their final answer.
   *
   * @returns one result for each pod, by name; a pod that does not answer has an `error`.
   * @throws the signal's reason if it aborts.
   */
  async observe(
    pods: readonly Stored<PodState>[],
    o: ObserveOptions,
  ): Promise<readonly ModelPod[]> {
    // They take their turns in the order of the questions: those who are silent again would leave no time for the others.
    const isLast = (pod: Stored<PodState>): number => Number(this.#silent.has(pod.metadata.uid))
    const inTurn = pods
      .toSorted((one, other) => byName(one.metadata, other.metadata))
      .toSorted((one, other) => isLast(one) - isLast(other))
    const observed = await Promise.all(inTurn.map((pod) => this.#observe(pod, o)))
    o.signal.throwIfAborted()
    return observed.toSorted((one, other) => byName(one.pod.metadata, other.pod.metadata))
  }

  /** Forgets the answers of a pod that is gone. */
  forget(uid: string): void {
    this.#known.delete(uid)
    this.#silent.delete(uid)
    this.#asking.delete(uid)
  }

  async #observe(pod: Stored<PodState>, o: ObserveOptions): Promise<ModelPod> {
    const isCurrent = isOfTemplate(pod, o.template)
    const main = mainStatusOf(pod)
    const address = podAddressOf(pod)
    const containerId = main?.containerID ?? ''
    const known = this.#knownOf(pod, o.modelName)
    if (known?.containerId === containerId) return { pod, isCurrent, model: known.model }
    if (address === undefined) return { pod, isCurrent }
    if (isFetching(pod)) return { pod, isCurrent, ...(await this.#progressOf(address, o)) }
    if (main?.state?.running === undefined) return { pod, isCurrent }
    const answer = await this.#ask(pod, { ...o, containerId, address })
    const isStarting = answer.error === undefined && !areContainersReady(pod)
    const progress = isStarting ? await this.#progressOf(address, o) : {}
    return { pod, isCurrent, ...answer, ...progress }
  }

  /** Asks a pod how far its start is. No answer is no failure: only the status says less then. */
  async #progressOf(
    address: PodAddress,
    o: ObserveOptions,
  ): Promise<{ readonly progress?: StartProgress }> {
    try {
      return { progress: await this.#client.startOfStep(address, o) }
    } catch {
      return {}
    }
  }

  /** Asks a pod whose process runs. */
  async #ask(
    pod: Stored<PodState>,
    o: ObserveOptions & { readonly containerId: string; readonly address: PodAddress },
  ): Promise<Pick<ModelPod, 'model' | 'error'>> {
    const { uid } = pod.metadata
    const question = this.#begin(uid)
    const { models = [], error } = await this.#answerOf(o.address, o)
    const model = models.find(({ name }) => name === o.modelName)
    // The pod may be gone by now, and forgotten already.
    if (this.#end(uid, question)) {
      this.#mark(uid, error)
      const isComplete = model !== undefined && areContainersReady(pod)
      if (isComplete) this.#keep(uid, o.modelName, { containerId: o.containerId, model })
    }
    return { ...(model !== undefined && { model }), ...(error !== undefined && { error }) }
  }

  /** Models that share a pod ask it at the same time. */
  #begin(uid: string): object {
    const question = {}
    this.#asking.set(uid, (this.#asking.get(uid) ?? new Set()).add(question))
    return question
  }

  /** @returns false if the pod was forgotten meanwhile. */
  #end(uid: string, question: object): boolean {
    const asking = this.#asking.get(uid)
    const isKnown = asking?.delete(question) === true
    if (asking?.size === 0) this.#asking.delete(uid)
    return isKnown
  }

  #knownOf({ metadata }: Stored<PodState>, modelName: string): Known | undefined {
    return this.#known.get(metadata.uid)?.get(modelName)
  }

  #keep(uid: string, modelName: string, known: Known): void {
    this.#known.set(uid, (this.#known.get(uid) ?? new Map<string, Known>()).set(modelName, known))
  }

  #mark(uid: string, error: ServeError | undefined): void {
    if (error?.reason === 'DEADLINE_EXCEEDED') this.#silent.add(uid)
    // One that was not asked is what it was.
    else if (error?.reason !== 'OVERLOADED') this.#silent.delete(uid)
  }

  async #answerOf(address: PodAddress, o: ObserveOptions): Promise<Answer> {
    try {
      return await this.#client.servedByStep(address, o)
    } catch (error) {
      return { error: ServeError.from(error) }
    }
  }
}

function byName(one: PodState['metadata'], other: PodState['metadata']): number {
  return one.name < other.name ? -1 : 1
}
