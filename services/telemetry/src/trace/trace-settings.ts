import { bug, ServeError } from '@tutti/errors'

export type TraceLevel = 'TIMESTAMPS' | 'TENSORS'

/** The values that say what is traced, under one name of the protocol each. */
export interface TraceValues {
  /** Empty is OFF. */
  readonly level: readonly TraceLevel[]
  /** Every how many requests one is traced; 0 is none. */
  readonly rate: number
  /** How many more are traced; -1 is no limit. */
  readonly count: number
  /** Traces in each file; 0 is all in one. */
  readonly logFrequency: number
}

/** Values to set; undefined returns to what is inherited. */
export type TraceChanges = { readonly [K in keyof TraceValues]?: TraceValues[K] | undefined }

/** The values that one model has, or that models share which have no value of their own. */
class Values {
  readonly #parent: Values | undefined
  readonly #own: { -readonly [K in keyof TraceValues]?: TraceValues[K] | undefined }
  /** Number of requests since the rate of these settings was set. */
  #seen = 0

  constructor(own: Partial<TraceValues>, parent?: Values) {
    this.#own = { ...own }
    this.#parent = parent
  }

  get<K extends keyof TraceValues>(key: K): TraceValues[K] {
    const value = this.#holder(key).#own[key]
    if (value === undefined) throw bug(`no value of ${key}`)
    return value
  }

  get hasOwn(): boolean {
    return Object.values(this.#own).some((value) => value !== undefined)
  }

  set(changes: TraceChanges): void {
    Object.assign(this.#own, changes)
    if ('rate' in changes) this.#seen = 0
  }

  all(): TraceValues {
    return {
      level: this.get('level'),
      rate: this.get('rate'),
      count: this.get('count'),
      logFrequency: this.get('logFrequency'),
    }
  }

  /** Counts a request, and says whether it is traced. */
  takes(): boolean {
    const { level, rate, count } = this.all()
    if (level.length === 0 || rate === 0 || count === 0) return false
    const counter = this.#holder('rate')
    counter.#seen += 1
    if (counter.#seen % rate !== 0) return false
    const limit = this.#holder('count')
    if (count > 0) limit.#own.count = count - 1
    return true
  }

  #holder(key: keyof TraceValues): Values {
    return this.#own[key] === undefined && this.#parent !== undefined
      ? this.#parent.#holder(key)
      : this
  }
}

function defined(changes: TraceChanges): Partial<TraceValues> {
  return Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined))
}

function pick(values: TraceValues, changes: TraceChanges): Partial<TraceValues> {
  return Object.fromEntries(Object.entries(values).filter(([key]) => key in changes))
}

export interface TraceSettingsOptions {
  /** The values of the command line. */
  readonly values: TraceValues
  /** File of the traces; '' for none. Only the command line names it. */
  readonly file: string
}

/** The settings of what is traced: for all models, and for single ones. */
export class TraceSettings {
  readonly file: string
  readonly #first: TraceValues
  readonly #all: Values
  readonly #models = new Map<string, Values>()

  constructor({ values, file }: TraceSettingsOptions) {
    this.file = file
    this.#first = values
    this.#all = new Values(values)
  }

  /** @param model - '' for those without values of their own. */
  valuesOf(model: string): TraceValues {
    return this.#of(model).all()
  }

  /** Counts a request of the model. @returns what of it is traced; undefined for nothing. */
  sample(model: string): readonly TraceLevel[] | undefined {
    const values = this.#of(model)
    return values.takes() ? values.get('level') : undefined
  }

  /**
   * Changes all of them or none.
   *
   * @param model - '' for all that have no value of their own.
   * @throws ServeError INVALID_PARAMETER if something is to be traced and there is no file.
   */
  change(model: string, changes: TraceChanges): void {
    if ((changes.level?.length ?? 0) > 0 && this.file === '') {
      const text = 'Attempting to set invalid trace setting :trace file name is not given'
      throw new ServeError('INVALID_PARAMETER', text)
    }
    if (model === '') return this.#all.set({ ...pick(this.#first, changes), ...defined(changes) })
    const values = this.#models.get(model) ?? new Values({}, this.#all)
    values.set(changes)
    if (values.hasOwn) this.#models.set(model, values)
    else this.#models.delete(model)
  }

  #of(model: string): Values {
    return this.#models.get(model) ?? this.#all
  }
}
