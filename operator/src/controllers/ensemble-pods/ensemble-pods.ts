import { ENSEMBLE_LABEL } from '@tutti/api'
import type { Stored } from '@tutti/kube'
import { ENSEMBLE, type EnsembleObject } from '../../api/kinds.ts'
import type { PodState } from '../../pods/pod-state.ts'
import { buildGroupChildren } from '../../resources/build-model-children.ts'
import { buildPodTemplate } from '../../resources/model-template.ts'
import type { PodGroup } from '../../resources/pod-group.ts'
import { TEMPLATE_ANNOTATION } from '../../resources/step-template.ts'
import { type Applier, type SyncResult, throwIfFailed } from '../../runtime/apply.ts'
import type { ReconcileContext, Result } from '../../runtime/controller.ts'
import { untilOwnerMoves } from '../../runtime/owner-check.ts'
import { type Caches, INDEX } from '../caches.ts'
import type { ControllerParts } from '../context.ts'
import type { Refusal } from '../model/check-model.ts'
import { findClaimRefusal } from '../model/claim-refusal.ts'
import { replacesFirst } from '../model/full-nodes.ts'
import type { PlannedGroup, PodGroups } from '../model/pod-groups.ts'
import { type OwnScaler, planOwnReplicas } from '../plan-own-replicas.ts'
import type { ReplicasGuard } from '../replicas-guard.ts'

export interface EnsemblePodsOptions extends Pick<ControllerParts, 'caches' | 'client'> {
  readonly groups: PodGroups
  readonly applier: Applier
  /** Scaler that gives the replicas for the provider Native. */
  readonly scaler: OwnScaler
  readonly guard: ReplicasGuard
  readonly onProblem: (modelKey: string) => void
}

/** Time until the next look at objects that are in the way: no watch reports other people's objects, quotas and policies. */
const BLOCKED_MS = 10_000

type Ensemble = Stored<EnsembleObject>

/** Keeps the Deployment in whose pods an Ensemble runs the Models of its steps together, and all objects around it. */
export class EnsemblePods {
  readonly #options: EnsemblePodsOptions

  constructor(o: EnsemblePodsOptions) {
    this.#options = o
  }

  /** @throws the error of a failed child; OwnerMoved if the Ensemble is gone or edited. */
  async reconcile({ signal }: ReconcileContext, key: string): Promise<Result> {
    const { caches, applier, scaler, guard } = this.#options
    const ensemble = caches.ensembles.get(key)
    if (ensemble === undefined) {
      for (const one of [applier, scaler, guard]) one.forget(key)
      return {}
    }
    // Its children go with it, by their owner references.
    if (ensemble.metadata.deletionTimestamp !== undefined) return {}
    return await untilOwnerMoves(() => this.#look(ensemble, key, signal))
  }

  async #look(ensemble: Ensemble, key: string, signal: AbortSignal): Promise<Result> {
    const { groups, onProblem } = this.#options
    const refusal = await this.#findClaimRefusal(ensemble, signal)
    groups.keepClaimRefusal(ensemble, refusal)
    const plan = groups.plan(ensemble)
    if (plan?.held !== undefined) return refusal === undefined ? {} : { requeueAfterMs: BLOCKED_MS }
    const synced = await this.#sync(ensemble, plan, { key, signal })
    if (synced === undefined) return {}
    const problems = groups.keepProblems(ensemble, synced.outcomes)
    const { namespace = '' } = ensemble.metadata
    if (problems.length > 0) {
      for (const { name } of plan?.group.models ?? []) onProblem(`${namespace}/${name}`)
    }
    throwIfFailed(synced)
    return problems.length > 0 ? { requeueAfterMs: BLOCKED_MS } : {}
  }

  /** Finds why the claims of the pods cannot be used. The server is asked only where there are some. @throws KubeError */
  #findClaimRefusal(ensemble: Ensemble, signal: AbortSignal): Promise<Refusal | undefined> {
    const { groups, client } = this.#options
    const { namespace = '' } = ensemble.metadata
    const claims = groups.plan(ensemble)?.group.spec.accelerator?.claims
    return findClaimRefusal(client, { namespace, claims, signal })
  }

  async #sync(
    ensemble: Ensemble,
    plan: PlannedGroup | undefined,
    { key, signal }: { readonly key: string; readonly signal: AbortSignal },
  ): Promise<SyncResult | undefined> {
    const { groups, applier, caches, scaler, guard } = this.#options
    const owner = { resource: ENSEMBLE, object: ensemble }
    if (plan !== undefined) {
      const { group, scaling } = plan
      const [deployment] = caches.deployments.byOwner(ensemble.metadata)
      const { uid } = ensemble.metadata
      const own = { key, uid, scaling, deployment, scaler, guard, signal }
      const { replicas } = await planOwnReplicas(own)
      const podTemplate = buildPodTemplate(group)
      const children = buildGroupChildren(group, {
        scaling,
        replicas,
        replacesFirst: replacesFirst({
          rollout: group.spec.rollout,
          deployment,
          template: podTemplate.metadata?.annotations?.[TEMPLATE_ANNOTATION],
          pods: podsOfEnsemble(caches, ensemble, group),
        }),
        podTemplate,
        services: [],
      })
      return await applier.sync(owner, children, { signal })
    }
    // Most Ensembles never have pods, and nothing is to be deleted.
    const hasPods = caches.deployments.byOwner(ensemble.metadata).length > 0
    if (!hasPods || !groups.isLeft(ensemble)) return undefined
    return await applier.sync(owner, [], { signal })
  }
}

/** Lists the pods of an Ensemble. A Model that joins it is in the new ones alone. */
export function podsOfEnsemble(
  { pods }: Pick<Caches, 'pods'>,
  { metadata: { name, namespace } }: Ensemble,
  { models }: PodGroup,
): readonly Stored<PodState>[] {
  const all = models.flatMap((one) => pods.byIndex(INDEX.model, `${namespace}/${one.name}`))
  return [...new Set(all)].filter(({ metadata }) => metadata.labels?.[ENSEMBLE_LABEL] === name)
}
