import type { ModelSpec } from '@tutti/api'
import type { Stored } from '@tutti/kube'
import type { ModelObject } from '../../api/kinds.ts'
import { type ModelFacts, toModelFacts } from '../../resources/model-facts.ts'
import { type Scaling, toScaling } from '../../resources/model-scaling.ts'
import { groupOfModel, type PodGroup } from '../../resources/pod-group.ts'
import { podLabelsOf } from '../../resources/step-labels.ts'
import type { StepPodSettings } from '../../resources/step-settings.ts'
import { credentialsDigest } from '../credentials-digest.ts'
import { isObserved, podCountsOf } from '../deployment-state.ts'
import { type CheckedModel, checkModel, type Refusal } from './check-model.ts'
import type { ModelReader } from './model-reader.ts'
import { readModelSpec } from './read-model-spec.ts'

type Model = Stored<ModelObject>

/** Where a Model runs. */
export type Placement =
  /** In the pods of its host: another Model, or itself. */
  | { readonly host: Model; readonly refusal?: undefined }
  | { readonly host?: undefined; readonly refusal: Refusal }

/** The pods that a host wants now. */
export interface PlannedGroup {
  readonly host: Model
  readonly group: PodGroup
  readonly scaling: Scaling
  /** Why the pods are left as they are: who says it, and in which words. */
  readonly held?: Held | undefined
}

/** The Model that holds all changes of its pods, with the reason. */
export interface Held {
  readonly model: string
  readonly reason: string
  readonly message: string
}

/**
 * Decides which Models run in which pods. A Model that moves stays where it was until all pods of its new home serve it, so that a move
 * loses no request.
 */
export class PodGroups {
  readonly #reader: ModelReader
  readonly #settingsOf: (namespace: string) => StepPodSettings

  /** @param settingsOf - returns the settings of the pods of a namespace. */
  constructor(reader: ModelReader, settingsOf: (namespace: string) => StepPodSettings) {
    this.#reader = reader
    this.#settingsOf = settingsOf
  }

  /** Finds the host of a Model: the Model itself without `runsWith`. */
  placementOf(model: Model): Placement {
    const { name, namespace } = model.metadata
    const wanted = readModelSpec(model).spec?.runsWith
    if (wanted === undefined) return { host: model }
    const place = `runsWith: got "${wanted}", `
    if (wanted === name) return refuse('HostInvalid', `${place}the Model itself, want another one`)
    const host = this.#reader.model(`${namespace}/${wanted}`)
    if (host === undefined || isLeaving(host)) {
      return refuse('HostNotFound', `${place}which is no Model of the namespace (metadata.name)`)
    }
    const above = readModelSpec(host).spec?.runsWith
    if (above === undefined) return { host }
    const text = `which runs in the pods of "${above}" itself, want a Model with pods of its own`
    return refuse('HostInvalid', `${place}${text}`)
  }

  /** Checks a Model. @param claimRefusal - see ModelCheckInput; not known of other Models than that of the pass. */
  check(model: Model, claimRefusal?: Refusal): CheckedModel {
    const { reader, settings } = { reader: this.#reader, settings: this.#settings(model) }
    return checkModel({
      model,
      rival: reader.rivalOf(model),
      settings,
      hasSecret: reader.secretOf(model) !== undefined,
      claimRefusal,
      placementRefusal: this.placementOf(model).refusal,
    })
  }

  /** Plans the pods of a host; undefined if its spec cannot be read. */
  plan(host: Model): PlannedGroup | undefined {
    const { spec } = readModelSpec(host)
    if (spec === undefined) return undefined
    const present = new Set(this.#reader.deploymentOf(host)?.models)
    const guests = this.#guestsOf(host, present)
    const facts = guests.flatMap((guest) => this.#factsOf(guest) ?? [])
    return {
      host,
      group: groupOfModel(this.#toFacts(host, spec), facts),
      scaling: toScaling(spec),
      held: this.#findHeld([host, ...guests.filter((guest) => present.has(guest.metadata.name))]),
    }
  }

  /** True if all pods of its host serve a Model, as far as Kubernetes knows, so that no other pod needs to. */
  isAtHome(model: Model): boolean {
    const { host } = this.placementOf(model)
    const deployment = host && this.#reader.deploymentOf(host)
    if (deployment === undefined || !isObserved(deployment)) return false
    const { wanted, all, updated, available } = podCountsOf(deployment)
    return deployment.models.includes(model.metadata.name) && all === updated && available >= wanted
  }

  /** True if nothing needs the pods of a Model that runs elsewhere: all Models in them are at home. */
  isLeft(model: Model): boolean {
    const { namespace } = model.metadata
    const present = this.#reader.deploymentOf(model)?.models ?? []
    return present
      .flatMap((name) => this.#reader.model(`${namespace}/${name}`) ?? [])
      .every((one) => isLeaving(one) || (this.#isElsewhere(one, model) && this.isAtHome(one)))
  }

  #isElsewhere(one: Model, host: Model): boolean {
    return this.placementOf(one).host?.metadata.uid !== host.metadata.uid
  }

  /** Lists the Models beside the host that its pods serve, or are to serve, by name. */
  #guestsOf(host: Model, present: ReadonlySet<string>): readonly Model[] {
    const { name, namespace } = host.metadata
    const coming = this.#reader
      .guestsOf(host)
      .filter((one) => present.has(one.metadata.name) || this.check(one).refusal === undefined)
    const staying = [...present]
      .filter((one) => one !== name && !coming.some(({ metadata }) => metadata.name === one))
      .flatMap((one) => this.#reader.model(`${namespace}/${one}`) ?? [])
      .filter((one) => !this.isAtHome(one))
    return [...coming, ...staying]
      .filter((one) => !isLeaving(one) && one.metadata.name !== name)
      .toSorted((one, other) => (one.metadata.name < other.metadata.name ? -1 : 1))
  }

  #findHeld(models: readonly Model[]): Held | undefined {
    for (const model of models) {
      const { name } = model.metadata
      const { spec, refusal } = this.check(model)
      if (refusal !== undefined) return { model: name, ...refusal }
      if (spec.paused !== true) continue
      return { model: name, reason: 'Paused', message: 'spec.paused: pods are left as they are' }
    }
    return undefined
  }

  #factsOf(model: Model): ModelFacts | undefined {
    const { spec } = readModelSpec(model)
    return spec && this.#toFacts(model, spec)
  }

  #toFacts(model: Model, spec: ModelSpec): ModelFacts {
    const { name, namespace = '', labels } = model.metadata
    const secret = this.#reader.secretOf(model)
    const digest = secret === undefined ? {} : { credentialsDigest: credentialsDigest(secret) }
    const settings = this.#settings(model)
    return toModelFacts({ name, namespace, labels: podLabelsOf(labels), spec, settings, ...digest })
  }

  #settings({ metadata: { namespace = '' } }: Model): StepPodSettings {
    return this.#settingsOf(namespace)
  }
}

function isLeaving({ metadata }: Model): boolean {
  return metadata.deletionTimestamp !== undefined
}

function refuse(reason: string, message: string): Placement {
  return { refusal: { condition: 'Accepted', reason, message } }
}
