import { isDeviceFault, type LoadedModel } from '@tutti/backends'
import type { Clock } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'

/** Executions of an instance in a row that fail with an error of its device, before the device is tried. */
const MOST_FAILURES = 3
/** Most time of an execution that tries the device: it may hang instead of failing. */
const TRIAL_MS = 30_000

/** The lines that a watch writes. */
export interface DeviceEvents {
  deviceTried(instance: number, error: string): void
  deviceWorks(instance: number): void
  instanceReplaced(instance: number, problem: string): void
}

export interface DeviceWatchOptions {
  readonly loaded: Pick<LoadedModel, 'replace'>
  /** Executes a request that is known to go well on an instance. Resolves with undefined where there is none. @throws its error. */
  readonly tryOut: (instance: number) => Promise<'worked' | undefined>
  /** Called once, when no process of the model's own stands between the fault and this process: it cannot execute the model again. */
  readonly lost: (problem: string) => void
  readonly events: DeviceEvents
  readonly clock: Clock
}

interface InstanceState {
  /** Failures in a row. */
  failures: number
  /** True if the process of the instance was replaced, and has not executed anything since. */
  isReplaced: boolean
  /** Set while the device is tried. */
  trial: Promise<void> | undefined
}

/**
 * Watches for faults of devices that stay, such as an illegal memory access of CUDA: each further execution of the process fails.
 * After three failures in a row of an instance a request is tried that is known to go well. If it fails so too, the process of the
 * instance is replaced; where it has none, or the new one has executed nothing, the model is lost to this process.
 */
export class DeviceWatch {
  readonly #options: DeviceWatchOptions
  /** States of the instances whose last execution failed. */
  readonly #states = new Map<number, InstanceState>()
  #isLost = false

  constructor(o: DeviceWatchOptions) {
    this.#options = o
  }

  /** True if the engine is not to be called again, not even to free what it holds: it could end the process. */
  get isLost(): boolean {
    return this.#isLost && this.#options.loaded.replace === undefined
  }

  /**
   * Learns how an execution ended.
   *
   * @param failure - undefined if it went well.
   * @returns a promise if the instance must execute nothing more until it resolves.
   */
  executed(instance: number, failure: ServeError | undefined): Promise<void> | undefined {
    if (failure === undefined) {
      this.#states.delete(instance)
      return undefined
    }
    if (this.#isLost || !isDeviceFault(failure.message)) return undefined
    const state = this.#states.get(instance) ?? newState()
    this.#states.set(instance, state)
    state.failures += 1
    if (state.failures >= MOST_FAILURES) state.trial ??= this.#try(instance, state, failure)
    return state.trial
  }

  async #try(instance: number, state: InstanceState, failure: ServeError): Promise<void> {
    const { events, loaded } = this.#options
    events.deviceTried(instance, failure.message)
    const problem = await this.#findProblem(instance, failure)
    state.trial = undefined
    state.failures = 0
    if (problem === undefined) {
      this.#states.delete(instance)
      events.deviceWorks(instance)
    } else if (loaded.replace !== undefined && !state.isReplaced) {
      state.isReplaced = true
      this.#states.set(instance, state)
      events.instanceReplaced(instance, problem)
      // Without the text, which would count as a further fault where it fails other requests.
      await loaded.replace(instance, 'executions fail with errors of its device')
    } else if (!this.#isLost) {
      this.#isLost = true
      this.#options.lost(problem)
    }
  }

  /** Tries the device. @returns why it is not to be used; undefined if the request goes well, or fails for another reason. */
  async #findProblem(instance: number, failure: ServeError): Promise<string | undefined> {
    const told = `${MOST_FAILURES} executions in a row failed with an error of the device`
    const toProblem = (text: string): string => `${told}, and a request that tried it too: ${text}`
    const late = Promise.withResolvers<string>()
    const stop = this.#options.clock.setTimer(TRIAL_MS, () =>
      late.resolve(toProblem(`no answer after ${TRIAL_MS / 1000} s`)),
    )
    const tried = async (): Promise<string | undefined> => {
      const result = await this.#options.tryOut(instance)
      return result === undefined ? `${told}: ${failure.message}` : undefined
    }
    try {
      return await Promise.race([tried(), late.promise])
    } catch (error) {
      const { message } = ServeError.from(error)
      return isDeviceFault(message) ? toProblem(message) : undefined
    } finally {
      stop()
    }
  }
}

function newState(): InstanceState {
  return { failures: 0, isReplaced: false, trial: undefined }
}
