import type { NamedResource } from '@tutti/api'
import {
  type AcceptedEnsemble,
  type EnsembleWorld,
  type KnownModel,
  modelsOf,
  optionalOutputsOf,
} from '@tutti/graph'
import type { ControllerRevision, Stored } from '@tutti/kube'
import type { EnsembleObject, ModelObject } from '../../api/kinds.ts'
import { acceptedOf, byRevision, isOrphanOf } from '../accepted-revisions.ts'
import { type Caches, INDEX } from '../caches.ts'
import { stepModelsOf } from '../read-ensemble.ts'
import { findRival, servedNameOf } from '../served-names.ts'

type ViewedCaches = Pick<Caches, 'models' | 'ensembles' | 'revisions'>

/** The Model or Ensemble that a step runs. */
export type StepTarget = Stored<ModelObject> | Stored<EnsembleObject>

/** The view of a namespace's resources for the check of an Ensemble. It reads only caches. */
export class NamespaceView {
  readonly #caches: ViewedCaches
  readonly #namespace: string

  constructor(caches: ViewedCaches, namespace: string) {
    this.#caches = caches
    this.#namespace = namespace
  }

  /** Finds the Model or Ensemble that holds a served name: the oldest of those that claim it. */
  holderOf(servedName: string): StepTarget | undefined {
    const all = this.#claims(servedName)
    return all.find((one) => findRival(one, all) === undefined)
  }

  /** Finds the Model or Ensemble with this `metadata.name`, which users may confuse with the served name. */
  resourceNamed(name: string): NamedResource | undefined {
    const key = `${this.#namespace}/${name}`
    for (const [kind, cache] of [
      ['Model', this.#caches.models],
      ['Ensemble', this.#caches.ensembles],
    ] as const) {
      const found = cache.get(key)
      if (found === undefined || found.metadata.deletionTimestamp !== undefined) continue
      return { kind, servedName: servedNameOf(found) }
    }
    return undefined
  }

  /** Returns the ControllerRevisions of an object, newest first. */
  revisionsOf(object: StepTarget): readonly Stored<ControllerRevision>[] {
    return this.#caches.revisions.byOwner(object.metadata).toSorted(byRevision)
  }

  /** Returns the ControllerRevisions that an earlier Ensemble of this name left behind. */
  orphansOf({ metadata }: StepTarget): readonly Stored<ControllerRevision>[] {
    return this.#caches.revisions
      .inNamespace(this.#namespace)
      .filter((revision) => isOrphanOf(revision, 'ensemble', metadata.name))
  }

  /** Returns the newest accepted state of an Ensemble that can be parsed. */
  acceptedOf(object: StepTarget): AcceptedEnsemble | undefined {
    for (const revision of this.revisionsOf(object)) {
      const accepted = acceptedOf(revision)
      if (accepted?.kind === 'Ensemble') return accepted
    }
    return undefined
  }

  /** Makes the input of `checkEnsemble` for an Ensemble of this namespace. */
  worldOf(object: Stored<EnsembleObject>): EnsembleWorld {
    const { models, ensembles } = this.#caches
    return {
      lookup: (servedName) => this.#lookup(servedName),
      resourceNamed: (name) => this.resourceNamed(name),
      names: () =>
        [models, ensembles].flatMap((cache) =>
          cache.inNamespace(this.#namespace).map(servedNameOf),
        ),
      holder: (servedName) => findRival(object, this.#claims(servedName)),
      composes: (servedName) => {
        const holder = this.holderOf(servedName)
        const ensemble = this.#ensemblesCalled(servedName).find(
          ({ metadata }) => metadata.uid === holder?.metadata.uid,
        )
        return ensemble === undefined ? [] : this.#composing(ensemble)
      },
    }
  }

  /**
   * Lists the models that compose an Ensemble, also in generations that routers still serve, because a later edit is not
   * accepted, or paused.
   */
  #composing(ensemble: Stored<EnsembleObject>): readonly string[] {
    const accepted = this.acceptedOf(ensemble)
    return [...stepModelsOf(ensemble), ...(accepted === undefined ? [] : modelsOf(accepted.graph))]
  }

  #claims(servedName: string): readonly StepTarget[] {
    const key = `${this.#namespace}/${servedName}`
    const all = [
      ...this.#caches.models.byIndex(INDEX.servedName, key),
      ...this.#ensemblesCalled(servedName),
    ]
    return all.filter(({ metadata }) => metadata.deletionTimestamp === undefined)
  }

  #ensemblesCalled(servedName: string): readonly Stored<EnsembleObject>[] {
    return this.#caches.ensembles.byIndex(INDEX.servedName, `${this.#namespace}/${servedName}`)
  }

  #lookup(servedName: string): KnownModel | 'pending' | 'absent' {
    const holder = this.holderOf(servedName)
    // It may come: manifests are applied in any order.
    if (holder === undefined) return 'absent'
    for (const revision of this.revisionsOf(holder)) {
      const accepted = acceptedOf(revision)
      if (accepted === undefined) continue
      if (accepted.kind === 'Ensemble') {
        return { config: accepted.config, optionalOutputs: optionalOutputsOf(accepted.graph) }
      }
      const { config, versions, mayRunTwice = false } = accepted
      return { config, readyVersions: versions.map(({ version }) => version), mayRunTwice }
    }
    return 'pending'
  }
}
