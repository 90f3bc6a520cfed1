import { ServeError } from '@tutti/errors'
import type { ModelMetadata, ModelStatistics } from '@tutti/model-config'
import type { SharedRegions } from '@tutti/shared-memory'
import type { ClientShare } from '../admission/admission-ticket.ts'
import type { Caller, CallerIdentity } from '../backend/caller.ts'
import type {
  IndexEntry,
  InferenceBackend,
  ModelControl,
  ResolvedModel,
} from '../backend/inference-backend.ts'
import { type AccessLog, toAudited } from './access-log.ts'
import type { Grant } from './credentials.ts'
import { meteredModel } from './metered-model.ts'
import type { QuotaMeter } from './quota-meter.ts'

export interface CallerAccess {
  readonly backend: InferenceBackend
  /**
   * Grants that the caller has now. For a model, the first grant that has it counts.
   *
   * @throws ServeError UNAUTHENTICATED once the caller has no grants.
   */
  readonly grants: () => readonly Grant[]
  readonly caller: Caller
  /** The error for a model that no grant has. */
  readonly refuse: (name: string, identity: string | undefined) => ServeError
  /** True if the listener offers load and unload, for callers who may. */
  readonly hasControl: boolean
  readonly log: AccessLog
}

/** A backend as the caller of one call sees it: the models of its grants, within its quota, and no others. */
export class AccessBackend implements InferenceBackend {
  readonly #access: CallerAccess
  /** Meter that has counted the call, so that its first request is not counted again. */
  #counted: QuotaMeter | undefined

  /**
   * Counts the call as a request of its caller's quota, however it ends.
   *
   * @throws ServeError QUOTA_EXCEEDED if any request would be refused now: then nothing of the call has to be read.
   */
  constructor(o: CallerAccess) {
    this.#access = o
    const grants = o.grants()
    const obstacles = grants.map(({ meter }) => meter?.obstacle)
    const [obstacle] = obstacles
    if (obstacle !== undefined && !obstacles.includes(undefined)) throw this.#refused(obstacle)
    const meter = this.#free?.meter
    meter?.charge()
    this.#counted = meter
  }

  checkCaller(): void {
    this.#access.grants()
  }

  get identity(): CallerIdentity {
    const { hasControl } = this.#access
    const grants = this.#access.grants()
    const name = grants.find((grant) => grant.identity !== undefined)?.identity
    return {
      name,
      mayControl: !hasControl || grants.some(({ mayControl }) => mayControl),
      mayCall: (model) => grants.some((grant) => reaches(grant, model)),
    }
  }

  get share(): ClientShare | undefined {
    return this.#access.grants().find(({ meter }) => meter !== undefined)?.meter?.share
  }

  isLive(): boolean {
    return this.#access.backend.isLive()
  }

  /** Checks the readiness of the models that the caller may call; other models do not matter. */
  isReady(): boolean {
    const names = this.#names
    if (names === undefined) return this.#access.backend.isReady()
    return this.isLive() && names.every((name) => this.#isThere(name))
  }

  async isModelReady(name: string, version: string): Promise<boolean> {
    const grant = this.#find(name)
    if (grant instanceof ServeError) {
      // Triton's answer for a model that is not there.
      if (grant.reason === 'MODEL_NOT_FOUND') return false
      throw this.#refused(grant)
    }
    this.#count(grant)
    return await this.#access.backend.isModelReady(name, version)
  }

  resolve(name: string, version: string): ResolvedModel {
    const { meter } = this.#admit(name)
    const model = this.#access.backend.resolve(name, version)
    if (meter?.quota.concurrentRequests === undefined) return model
    return meteredModel(model, meter, (error) => this.#refused(error))
  }

  modelMetadata(name: string, version: string): ModelMetadata {
    this.#admit(name)
    return this.#access.backend.modelMetadata(name, version)
  }

  async statistics(name: string, version: string): Promise<readonly ModelStatistics[]> {
    const { backend } = this.#access
    if (name !== '') {
      this.#admit(name)
      return await backend.statistics(name, version)
    }
    this.#count(this.#free)
    const names = this.#names?.filter((known) => this.#isThere(known)) ?? ['']
    return (await Promise.all(names.map((known) => backend.statistics(known, version)))).flat()
  }

  async repositoryIndex(readyOnly: boolean): Promise<readonly IndexEntry[]> {
    this.#count(this.#free)
    const entries = await this.#access.backend.repositoryIndex(readyOnly)
    return entries.filter(({ name }) => !(this.#find(name) instanceof ServeError))
  }

  get control(): ModelControl | undefined {
    const { backend, hasControl } = this.#access
    const { control } = backend
    if (!hasControl || control === undefined) return undefined
    if (control.refusal !== undefined) return control
    const check = (name: string): void => {
      // One identity may call the model, and another of the same caller may control others.
      const grant = this.#find(name, ({ mayControl }) => mayControl)
      if (grant instanceof ServeError) throw grant
      this.#count(grant)
    }
    return {
      load: async (name, parameters) => {
        check(name)
        await control.load(name, parameters)
      },
      unload: async (name, o) => {
        check(name)
        await control.unload(name, o)
      },
    }
  }

  get regions(): SharedRegions | undefined {
    const { backend, hasControl } = this.#access
    return hasControl ? backend.regions : undefined
  }

  /** Names of the models that the caller reaches; undefined for all. */
  get #names(): readonly string[] | undefined {
    const grants = this.#access.grants()
    if (grants.some(({ models }) => models === undefined)) return undefined
    return [...new Set(grants.flatMap(({ models }) => [...(models ?? [])]))]
  }

  #isThere(name: string): boolean {
    try {
      this.#access.backend.resolve(name, '')
      return true
    } catch {
      // Unknown or not ready: either way a client cannot call it now.
      return false
    }
  }

  #find(name: string, isWanted: (grant: Grant) => boolean = () => true): Grant | ServeError {
    const { refuse } = this.#access
    const grants = this.#access.grants()
    const grant = grants.find((one) => reaches(one, name) && isWanted(one))
    return grant ?? refuse(name, this.identity.name)
  }

  /** Counts one request. @throws ServeError for a model that the caller may not call, or now not. */
  #admit(name: string): Grant {
    const grant = this.#find(name)
    if (grant instanceof ServeError) {
      this.#charge(this.#free)
      throw this.#refused(grant)
    }
    this.#count(grant)
    return grant
  }

  /** Grant for a request about no model, or about several. */
  get #free(): Grant | undefined {
    const grants = this.#access.grants()
    return grants.find(({ meter }) => meter?.obstacle === undefined) ?? grants[0]
  }

  /** Counts one request that is let in. */
  #count(grant: Grant | undefined): void {
    this.#charge(grant)
    if (grant?.identity !== undefined) this.#access.log.counts.request(grant.identity)
  }

  #charge(grant: Grant | undefined): void {
    const counted = this.#counted
    this.#counted = undefined
    if (grant?.meter === undefined || grant.meter === counted) return
    try {
      grant.meter.charge()
    } catch (error) {
      throw this.#refused(ServeError.from(error))
    }
  }

  #refused(error: ServeError): ServeError {
    const { log, caller } = this.#access
    log.refused(toAudited(caller, this.identity.name, error), error)
    return error
  }
}

function reaches({ models }: Grant, name: string): boolean {
  return models === undefined || models.has(name)
}
