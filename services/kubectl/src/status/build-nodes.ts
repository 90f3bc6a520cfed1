import {
  isOfBuiltins,
  isOfRouter,
  type ModelStart,
  modelNameOf,
  notServedText,
  resourceState,
  WAITING_REASONS,
} from '@tutti/api'
import { modelOfStep, modelsOfStep } from '@tutti/graph'
import type { Pod, Stored } from '@tutti/kube'
import { type EnsembleObject, type ModelObject, type StepReference } from '../resources.ts'
import { isLeaving, toPodNode } from './pod-node.ts'
import { modelsOfPods, type NamespaceState } from './read-state.ts'
import { type Cause, isBroken, type StatusNode } from './tree.ts'

/**
 * Builds the trees of a namespace: its Ensembles with their steps, the Models that no Ensemble runs, and the Router, each with
 * its pods. Pure.
 *
 * @param o.name - name of an Ensemble or a Model, in the cluster or to clients; all if absent.
 * @param o.nowMs - milliseconds since the epoch.
 * @returns an empty list if no Ensemble or Model has the name.
 */
export function buildNodes(
  state: NamespaceState,
  o: { readonly name?: string | undefined; readonly nowMs: number },
): readonly StatusNode[] {
  const { ensembles = [], models = [] } = state
  const builder = new NodeBuilder(state, o.nowMs)
  const isChosen = (object: Stored<ModelObject | EnsembleObject>): boolean =>
    o.name === undefined || object.metadata.name === o.name || modelNameOf(object) === o.name
  const used = new Set(ensembles.flatMap(({ spec }) => (spec?.steps ?? []).flatMap(modelsOfStep)))
  const nodes = [
    ...ensembles.filter(isChosen).map((one) => builder.ensemble(one)),
    ...models
      .filter((one) => isChosen(one) && (o.name !== undefined || !used.has(modelNameOf(one))))
      .map((one) => builder.model(one)),
  ]
  return nodes.length === 0 && o.name !== undefined ? [] : [...nodes, ...builder.routers]
}

class NodeBuilder {
  readonly #state: NamespaceState
  readonly #nowMs: number
  readonly routers: readonly StatusNode[]

  constructor(state: NamespaceState, nowMs: number) {
    this.#state = state
    this.#nowMs = nowMs
    this.routers = this.#routers()
  }

  model(model: Stored<ModelObject>): StatusNode {
    const { name } = model.metadata
    const { readyReplicas, desiredReplicas } = model.status ?? {}
    const pods = this.#pods((pod) => modelsOfPods(pod).includes(name), model.status?.start)
    return {
      kind: 'Model',
      name,
      ...withPodCause(resourceState(model, this.#nowMs), pods),
      ...podCount(readyReplicas, desiredReplicas),
      children: pods,
    }
  }

  /** @param above - Ensembles that run this one: a circle ends. */
  ensemble(ensemble: Stored<EnsembleObject>, above: ReadonlySet<string> = new Set()): StatusNode {
    const { metadata, spec, status } = ensemble
    const path = new Set([...above, metadata.name])
    const steps = (spec?.steps ?? []).map((step) => this.#step(step, ensemble, path))
    const own = resourceState(ensemble, this.#nowMs)
    const cause = own.cause && (this.#causeBelow(own.cause, steps) ?? own.cause)
    return {
      kind: 'Ensemble',
      name: metadata.name,
      state: own.state,
      ...(status?.stepsReady !== undefined && { detail: `${status.stepsReady} steps` }),
      ...(cause !== undefined && { cause }),
      children: steps,
    }
  }

  #step(
    step: StepReference,
    ensemble: Stored<EnsembleObject>,
    above: ReadonlySet<string>,
  ): StatusNode {
    const { builtin } = step
    if (builtin !== undefined && builtin.model === undefined) {
      // Its pods stand below the Router: all such steps of the namespace share them.
      const told = withPodCause(toldByEnsemble(ensemble, step.name), this.#pods(isOfBuiltins))
      return { kind: 'Built-in', name: builtin.name, step: step.name, children: [], ...told }
    }
    const served = modelOfStep(step)
    const { models, ensembles } = this.#state
    const model = models?.find((one) => modelNameOf(one) === served)
    if (model !== undefined) return { ...this.model(model), step: step.name }
    const nested = ensembles?.find((one) => modelNameOf(one) === served)
    if (nested !== undefined && !above.has(nested.metadata.name)) {
      return { ...this.ensemble(nested, above), step: step.name }
    }
    const kind = step.ensembleRef === undefined ? 'Model' : 'Ensemble'
    const node = { kind, name: served, step: step.name, children: [] } as const
    if (models === undefined || nested !== undefined) {
      return { ...node, ...toldByEnsemble(ensemble, step.name) }
    }
    const named = models.find(({ metadata }) => metadata.name === served)
    const meant = named && { kind: 'Model', servedName: modelNameOf(named) }
    const cause = { reason: 'NotFound', message: notServedText(served, meant) }
    return { ...node, state: 'Missing', cause }
  }

  #causeBelow({ reason }: Cause, steps: readonly StatusNode[]): Cause | undefined {
    if (!WAITING_REASONS.has(reason)) return undefined
    const broken = [...steps, ...this.routers].find((one) => one.cause && isBroken(one))
    if (broken?.cause === undefined) return undefined
    const { step, kind, name, cause } = broken
    const own = `${kind} "${name}": `
    // The status of an Ensemble already says which Model it speaks of.
    const text = cause.message.startsWith(own) ? cause.message : `${own}${cause.message}`
    const message = step === undefined ? text : `step "${step}", ${text}`
    return { reason: cause.reason, message }
  }

  #routers(): readonly StatusNode[] {
    return (this.#state.routers ?? []).map((router) => {
      const pods = this.#pods(isOfRouter)
      const { readyReplicas, replicas } = router.status ?? {}
      return {
        kind: 'Router',
        name: router.metadata.name,
        ...withPodCause(resourceState(router, this.#nowMs), pods),
        ...podCount(readyReplicas, replicas),
        children: [...pods, ...this.#pods(isOfBuiltins)],
      }
    })
  }

  #pods(isWanted: (pod: Stored<Pod>) => boolean, start?: ModelStart): readonly StatusNode[] {
    const { pods = [], events = [] } = this.#state
    return pods
      .filter(isWanted)
      .toSorted((one, other) => rankOf(one).localeCompare(rankOf(other), 'en'))
      .map((pod) => toPodNode(pod, { events, start, nowMs: this.#nowMs }))
  }
}

/** Pods that are going come last. */
function rankOf(pod: Stored<Pod>): string {
  return `${isLeaving(pod) ? 1 : 0} ${pod.metadata.name}`
}

function podCount(ready: number | undefined, all: number | undefined): Pick<StatusNode, 'detail'> {
  return all === undefined ? {} : { detail: `${ready ?? 0}/${all} pod${all === 1 ? '' : 's'}` }
}

/** Takes the cause from a pod: what a resource waits for is often there, which says more than "not ready". */
function withPodCause<T extends Pick<StatusNode, 'state' | 'cause'>>(
  own: T,
  pods: readonly StatusNode[],
): T {
  if (own.cause === undefined || !WAITING_REASONS.has(own.cause.reason)) return own
  const broken = pods.find(({ cause }) => cause !== undefined && cause.reason !== 'Terminating')
  if (broken?.cause === undefined) return own
  const { reason, message } = broken.cause
  return { ...own, cause: { reason, message: `pod "${broken.name}": ${message}` } }
}

/** Reads what the status of an Ensemble says of a step, where its Model cannot be read. */
function toldByEnsemble(
  { status }: Stored<EnsembleObject>,
  name: string,
): Pick<StatusNode, 'state' | 'cause'> {
  const told = status?.steps?.find((step) => step.name === name)
  if (told === undefined) return { state: 'Unknown' }
  if (told.ready) return { state: 'Ready' }
  const { reason = 'NotReady', message = 'it is not ready' } = told
  return { state: 'NotReady', cause: { reason, message } }
}
