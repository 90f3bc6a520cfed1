import { type Accelerator, DEFAULT_DEVICE, type EnsembleSpec, type ModelSpec } from '@tutti/api'
import type { Stored } from '@tutti/kube'
import type { EnsembleObject, ModelObject } from '../../api/kinds.ts'
import { type ModelFacts, toModelFacts } from '../../resources/model-facts.ts'
import { maySleep, type Scaling, toScaling } from '../../resources/model-scaling.ts'
import { groupOfEnsemble, groupOfModel, type PodGroup } from '../../resources/pod-group.ts'
import { podLabelsOf } from '../../resources/step-labels.ts'
import type { StepPodSettings } from '../../resources/step-settings.ts'
import type { ChildOutcome } from '../../runtime/apply.ts'
import { toCanonicalJson } from '../../runtime/canonical.ts'
import { credentialsDigest } from '../credentials-digest.ts'
import { isObserved, podCountsOf } from '../deployment-state.ts'
import { findHostAccess, toHostAccessText } from '../host-access.ts'
import { readEnsemble } from '../read-ensemble.ts'
import { type CheckedModel, checkModel, type Refusal } from './check-model.ts'
import type { ModelReader } from './model-reader.ts'
import { readModelSpec } from './read-model-spec.ts'

type Model = Stored<ModelObject>
type Ensemble = Stored<EnsembleObject>
/** The owner of a Deployment: a Model, or an Ensemble that takes the Models of its steps together. */
export type Host = Model | Ensemble

/** Where a Model runs. */
export type Placement =
  | {
      readonly host: Host
      readonly refusal?: undefined
      /** Reason why it has pods of its own although an Ensemble asks for it. */
      readonly apart?: string
    }
  | { readonly host?: undefined; readonly refusal: Refusal; readonly apart?: undefined }

/** The pods that a host wants now. */
export interface PlannedGroup {
  readonly host: Host
  readonly group: PodGroup
  readonly scaling: Scaling
  /** Reason why the pods are left as they are, with the resource that says it. */
  readonly held?: Held | undefined
}

/** The Model or Ensemble that holds all changes of its pods, with the reason. */
export interface Held {
  readonly uid: string
  /** Kind and name, e.g. `Model "yolo"`. */
  readonly title: string
  readonly reason: string
  readonly message: string
}

/** Fields with which a Model says itself what its pods are like. */
const OWN_FIELDS = ['rollout', 'disruptionBudget', 'podTemplate', 'suspend'] as const

/**
 * Decides which Models run in which pods. A Model that moves stays where it was until all pods of its new home serve it, so that a move
 * loses no request.
 */
export class PodGroups {
  readonly #reader: ModelReader
  readonly #settingsOf: (namespace: string) => StepPodSettings
  /** Outcomes that stood in the way of the objects of a host at its last pass, by its uid. */
  readonly #problems = new Map<string, readonly ChildOutcome[]>()
  /** Refusals of the claims of Ensembles, by uid. */
  readonly #claimRefusals = new Map<string, Refusal>()

  /** @param settingsOf - returns the settings of the pods of a namespace. */
  constructor(reader: ModelReader, settingsOf: (namespace: string) => StepPodSettings) {
    this.#reader = reader
    this.#settingsOf = settingsOf
  }

  /** Finds the host of a Model: mostly the Model itself. */
  placementOf(model: Model): Placement {
    const { spec } = readModelSpec(model)
    if (spec?.runsWith !== undefined) return this.#placeWith(model, spec.runsWith)
    const asking = spec === undefined ? [] : this.#askingFor(model)
    const [ensemble, second] = asking
    if (spec === undefined || ensemble === undefined) return { host: model }
    const title = titleOf(ensemble)
    const apart = (why: string): Placement => ({
      host: model,
      apart: `${title} takes the Models of its steps together, this one has pods of its own: ${why}`,
    })
    if (second !== undefined) return apart(`${titleOf(second)} asks for it too`)
    const why = this.#findOwn(model, spec)
    if (why !== undefined) return apart(why)
    if (!hasDevices(spec, this.#devicesOf(ensemble))) {
      return apart('its accelerator is another one than that of the pods of the Ensemble')
    }
    return { host: ensemble }
  }

  /** Checks a Model. @param claimRefusal - see ModelCheckInput; not known of other Models than that of the pass. */
  check(model: Model, claimRefusal?: Refusal): CheckedModel {
    return checkModel({
      model,
      rival: this.#reader.rivalOf(model),
      settings: this.#settings(model),
      hasSecret: this.#reader.secretOf(model) !== undefined,
      claimRefusal,
      placementRefusal: this.placementOf(model).refusal,
    })
  }

  /** Plans the pods of a host; undefined if it has none, or its spec cannot be read. */
  plan(host: Host): PlannedGroup | undefined {
    const present = new Set(this.#reader.deploymentOf(host)?.models)
    const guests = this.#guestsOf(host, present)
    const group = this.#groupOf(
      host,
      guests.flatMap((guest) => this.#factsOf(guest) ?? []),
    )
    if (group === undefined) return undefined
    const isPresent = ({ metadata }: Model): boolean => present.has(metadata.name)
    // They still serve those that leave, and the spec no longer says what they are like.
    const areLeft = isEnsemble(host) && guests.every((guest) => this.#isElsewhere(guest, host))
    const held = areLeft ? toHeld(host, LEAVING) : this.#findHeld(host, guests.filter(isPresent))
    return { host, ...group, held }
  }

  /** Keeps what stands in the way of the objects of a host, which its guests tell too. */
  keepProblems({ metadata }: Host, outcomes: readonly ChildOutcome[]): readonly ChildOutcome[] {
    const problems = outcomes.filter(({ result }) => !SETTLED.has(result))
    if (problems.length > 0) this.#problems.set(metadata.uid, problems)
    else this.#problems.delete(metadata.uid)
    return problems
  }

  problemsOf({ metadata }: Host): readonly ChildOutcome[] {
    return this.#problems.get(metadata.uid) ?? []
  }

  /** Forgets a host that is gone. */
  forget(uid: string): void {
    this.#problems.delete(uid)
    this.#claimRefusals.delete(uid)
  }

  /** Keeps the refusal of the claims of an Ensemble's pods, which only the server knows; undefined if there is none. */
  keepClaimRefusal({ metadata }: Ensemble, refusal: Refusal | undefined): void {
    if (refusal === undefined) this.#claimRefusals.delete(metadata.uid)
    else this.#claimRefusals.set(metadata.uid, refusal)
  }

  /** Finds why the pods that an Ensemble asks for are refused. */
  refusalOf(ensemble: Ensemble): Omit<Refusal, 'condition'> | undefined {
    const spec = specOf(ensemble)
    if (spec?.placement !== 'Together') return undefined
    const access = this.#settings(ensemble).allowsHostAccess
      ? undefined
      : findHostAccess(spec.podTemplate)
    if (access === undefined) return this.#claimRefusals.get(ensemble.metadata.uid)
    return { reason: 'HostAccessNotAllowed', message: toHostAccessText(access) }
  }

  /** Lists why Models of an Ensemble that takes them together have pods of their own. */
  apartFrom(ensemble: Ensemble): readonly string[] {
    if (specOf(ensemble)?.placement !== 'Together') return []
    const refusal = this.refusalOf(ensemble)
    const refused = refusal === undefined ? [] : [`no pods are made of it: ${refusal.message}`]
    const apart = this.#reader.modelsOf(ensemble).flatMap((model) => {
      const { apart: why } = this.placementOf(model)
      return why === undefined ? [] : [`${titleOf(model)}: ${why}`]
    })
    return [...refused, ...apart]
  }

  /** True if all pods of its host serve a Model, as far as Kubernetes knows, so that no other pod needs to. */
  isAtHome(model: Model): boolean {
    const { host } = this.placementOf(model)
    const deployment = host && this.#reader.deploymentOf(host)
    if (deployment === undefined || !isObserved(deployment)) return false
    const { wanted, all, updated, available } = podCountsOf(deployment)
    // Pods that are not wanted serve nothing, unless requests wake them, or the Model itself wants none.
    const isServed =
      available >= wanted &&
      (wanted > 0 || host === model || (host !== undefined && this.#maySleep(host)))
    return isServed && all === updated && deployment.models.includes(model.metadata.name)
  }

  /** True if nothing needs the pods of a host that is to have none: all Models in them are at home elsewhere. */
  isLeft(host: Host): boolean {
    const { namespace } = host.metadata
    const present = this.#reader.deploymentOf(host)?.models ?? []
    return present
      .flatMap((name) => this.#reader.model(`${namespace}/${name}`) ?? [])
      .every((one) => isLeaving(one) || (this.#isElsewhere(one, host) && this.isAtHome(one)))
  }

  /** Places a Model that says with which other one it runs. */
  #placeWith({ metadata: { name, namespace } }: Model, wanted: string): Placement {
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

  /** Lists the Ensembles that take the Models of their steps together, and have this one among them, by name. */
  #askingFor(model: Model): readonly Ensemble[] {
    if (this.#reader.rivalOf(model) !== undefined) return []
    return this.#reader
      .ensemblesOf(model)
      .filter((one) => !isLeaving(one) && specOf(one)?.placement === 'Together')
      .toSorted(byName)
  }

  /** Finds why a Model has pods of its own, whatever an Ensemble asks for. */
  #findOwn(model: Model, spec: ModelSpec): string | undefined {
    if (spec.placement === 'Alone') return 'its placement is Alone'
    const field = OWN_FIELDS.find((name) => spec[name] !== undefined && spec[name] !== false)
    if (field !== undefined) return `it has ${field} of its own`
    if (hasScaling(spec)) return 'it has scaling of its own'
    const [guest] = this.#reader.guestsOf(model)
    return guest && `Model "${guest.metadata.name}" runs with it`
  }

  /** Returns the devices of an Ensemble's pods: those that it says, else those of the first of its Models that says any. */
  #devicesOf(ensemble: Ensemble): ModelSpec['accelerator'] {
    const own = specOf(ensemble)?.accelerator
    if (own !== undefined) return own
    const specs = this.#reader.modelsOf(ensemble).flatMap((one) => {
      const { spec } = readModelSpec(one)
      const isAsked = spec?.runsWith === undefined && this.#askingFor(one).length === 1
      return spec !== undefined && isAsked && this.#findOwn(one, spec) === undefined ? [spec] : []
    })
    // Those that leave have theirs until they are gone.
    const { namespace } = ensemble.metadata
    for (const name of this.#reader.deploymentOf(ensemble)?.models ?? []) {
      const model = this.#reader.model(`${namespace}/${name}`)
      const { spec } = model === undefined ? {} : readModelSpec(model)
      if (spec !== undefined) specs.push(spec)
    }
    return specs.find(({ accelerator }) => accelerator !== undefined)?.accelerator
  }

  #maySleep(host: Host): boolean {
    const spec = isEnsemble(host) ? specOf(host) : readModelSpec(host).spec
    return spec !== undefined && maySleep(toScaling(spec))
  }

  #isElsewhere(one: Model, host: Host): boolean {
    return this.placementOf(one).host?.metadata.uid !== host.metadata.uid
  }

  /** Lists the Models beside the host itself that its pods serve, or are to serve, by name. */
  #guestsOf(host: Host, present: ReadonlySet<string>): readonly Model[] {
    const { namespace, uid } = host.metadata
    const asked = isEnsemble(host) ? this.#reader.modelsOf(host) : this.#reader.guestsOf(host)
    const coming = asked.filter(
      (one) =>
        !this.#isElsewhere(one, host) &&
        (present.has(one.metadata.name) || this.check(one).refusal === undefined),
    )
    const known = new Set(coming.map(({ metadata }) => metadata.uid)).add(uid)
    const staying = [...present]
      .flatMap((name) => this.#reader.model(`${namespace}/${name}`) ?? [])
      .filter((one) => !known.has(one.metadata.uid) && !this.isAtHome(one))
    return [...coming, ...staying].filter((one) => !isLeaving(one)).toSorted(byName)
  }

  #groupOf(
    host: Host,
    guests: readonly ModelFacts[],
  ): Pick<PlannedGroup, 'group' | 'scaling'> | undefined {
    if (!isEnsemble(host)) {
      const facts = this.#factsOf(host)
      return facts && { group: groupOfModel(facts, guests), scaling: toScaling(facts.spec) }
    }
    const spec = specOf(host)
    if (spec === undefined || guests.length === 0) return undefined
    const { name, namespace = '', labels } = host.metadata
    const accelerator = this.#devicesOf(host)
    const facts = {
      name,
      namespace,
      labels: podLabelsOf(labels),
      settings: this.#settings(host),
      hasBuiltins: spec.steps.some(({ builtin }) => builtin !== undefined && !builtin.model),
      spec: { ...spec, ...(accelerator !== undefined && { accelerator }) },
    }
    return { group: groupOfEnsemble(facts, guests), scaling: toScaling(spec) }
  }

  #findHeld(host: Host, guests: readonly Model[]): Held | undefined {
    const refused = isEnsemble(host) ? this.refusalOf(host) : undefined
    if (refused !== undefined) return toHeld(host, refused)
    if (isEnsemble(host) && specOf(host)?.paused === true) return toHeld(host, PAUSED)
    for (const model of isEnsemble(host) ? guests : [host, ...guests]) {
      const { spec, refusal } = this.check(model)
      if (refusal !== undefined) return toHeld(model, refusal)
      if (spec.paused === true) return toHeld(model, PAUSED)
    }
    return undefined
  }

  #factsOf(model: Model): ModelFacts | undefined {
    const { spec } = readModelSpec(model)
    if (spec === undefined) return undefined
    const { name, namespace = '', labels } = model.metadata
    const secret = this.#reader.secretOf(model)
    const digest = secret === undefined ? {} : { credentialsDigest: credentialsDigest(secret) }
    const settings = this.#settings(model)
    return toModelFacts({ name, namespace, labels: podLabelsOf(labels), spec, settings, ...digest })
  }

  #settings({ metadata: { namespace = '' } }: Host): StepPodSettings {
    return this.#settingsOf(namespace)
  }
}

const SETTLED: ReadonlySet<ChildOutcome['result']> = new Set(['applied', 'repaired', 'unchanged'])

const LEAVING = { reason: 'Moving', message: 'its Models move to other pods' }
const PAUSED = { reason: 'Paused', message: 'spec.paused: pods are left as they are' }

/** Writes kind and name, e.g. `Model "yolo"`. */
export function titleOf(host: Host): string {
  return `${isEnsemble(host) ? 'Ensemble' : 'Model'} "${host.metadata.name}"`
}

export function isEnsemble(host: Host): host is Ensemble {
  return host.kind === 'Ensemble'
}

function toHeld(host: Host, { reason, message }: Pick<Held, 'reason' | 'message'>): Held {
  return { uid: host.metadata.uid, title: titleOf(host), reason, message }
}

function specOf(ensemble: Ensemble): EnsembleSpec | undefined {
  return readEnsemble(ensemble).manifest?.spec
}

/** The API server fills in the default of `replicas`. */
function hasScaling({ scaling = {} }: ModelSpec): boolean {
  return Object.entries(scaling).some(([name, value]) => name !== 'replicas' || value !== 1)
}

/** True if a Model can do with these devices: it asks for none, or for the same. */
function hasDevices({ accelerator }: ModelSpec, devices: ModelSpec['accelerator']): boolean {
  if (accelerator === undefined) return true
  return toCanonicalJson(withDefaults(accelerator)) === toCanonicalJson(withDefaults(devices ?? {}))
}

function withDefaults(accelerator: Accelerator): Accelerator {
  if (accelerator.claims !== undefined) return accelerator
  return { resourceName: DEFAULT_DEVICE, count: 1, ...accelerator }
}

function isLeaving({ metadata }: Host): boolean {
  return metadata.deletionTimestamp !== undefined
}

function byName(one: Host, other: Host): number {
  return one.metadata.name < other.metadata.name ? -1 : 1
}

function refuse(reason: string, message: string): Placement {
  return { refusal: { condition: 'Accepted', reason, message } }
}
