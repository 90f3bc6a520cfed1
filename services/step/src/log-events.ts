import type { Logger } from '@tutti/chassis'
import type { ServeError } from '@tutti/errors'

/** The lines that a running scheduler writes. */
export type SchedulerEvents = ReturnType<StepEvents['forVersion']>

/** Log lines of this package: each has a method here. */
export class StepEvents {
  readonly #log: Logger

  constructor(log: Logger) {
    this.#log = log
  }

  modelRefused(model: string, error: string): void {
    this.#log.error('model configuration refused', { model, error })
  }

  settingIneffective(model: string, field: string, flag: string): void {
    this.#log.warn('setting has no effect, as in Triton without its flag', { model, field, flag })
  }

  backendSettingIneffective(value: string): void {
    const description =
      'No effect: docs/engines.md lists the settings of the backends that are here.'
    this.#log.info('flag has no effect', { flag: '--backend-config', value, description })
  }

  batchingIneffective(model: string): void {
    const why =
      'max_batch_size is 0: every request executes alone, as in Triton; queue policies and priorities hold'
    this.#log.warn('dynamic_batching forms no batches', { model, why })
  }

  acceleratorIdle(model: string): void {
    const why = 'its instance groups are of KIND_CPU'
    this.#log.warn('model leaves the accelerator idle', { model, why })
  }

  warmUpSampleEmpty(model: string, sample: string): void {
    const why = 'its batch_size is 0, or not set: Triton leaves it out too'
    this.#log.warn('a warm-up sample is not executed', { model, sample, why })
  }

  warmUpInputsUnknown(model: string, sample: string, inputs: readonly string[]): void {
    this.#log.warn('inputs of a warm-up sample are left out, the model has none of their names', {
      model,
      sample,
      inputs,
    })
  }

  /** Logs how far the loading of models is. @param longest - models that have been loading for the longest time. */
  modelsLoading(
    done: number,
    total: number,
    longest: readonly { readonly model: string; readonly elapsedMs: number }[],
  ): void {
    this.#log.info('loading models', { done, total, longest })
  }

  versionLoading(model: string, version: number): void {
    this.#log.info('model version loading', { model, version })
  }

  versionReady(model: string, version: number, revision: string, loadSeconds: number): void {
    this.#log.info('model version ready', { model, version, revision, loadSeconds })
  }

  versionFailed(model: string, version: number, error: ServeError): void {
    this.#log.error('model version failed to load', {
      model,
      version,
      reason: error.reason,
      error: error.message,
    })
  }

  versionUnloaded(model: string, version: number, revision: string): void {
    this.#log.info('model version unloaded', { model, version, revision })
  }

  closeFailed(model: string, version: number, error: ServeError): void {
    this.#log.warn('model version failed to close', { model, version, error: error.message })
  }

  closeGivenUp(afterMs: number): void {
    this.#log.warn('models still execute or load, not waited for', { afterMs })
  }

  draining(inFlight: number): void {
    this.#log.info('step draining', { inFlight })
  }

  drained(): void {
    this.#log.info('step drained', {})
  }

  /** Makes the log lines of one model version's scheduler. */
  forVersion(model: string, version: number) {
    const log = this.#log.child({ model, version })
    return {
      /** Logs that the engine sent something after a final response. @param request - the client's id. */
      responseOutOfTurn: (request: string) => log.warn('engine response out of turn', { request }),
      /** Logs that an output differs from the configuration. Called once for each output. */
      outputDiffers: (o: {
        readonly output: string
        readonly got: string
        readonly want: string
      }) => log.warn('model output differs from the configuration', { ...o }),
      deviceTried: (instance: number, error: string) =>
        log.warn('executions fail with an error of the device, trying a request', {
          instance,
          error,
        }),
      deviceWorks: (instance: number) => log.info('the device works again', { instance }),
      instanceReplaced: (instance: number, problem: string) =>
        log.error('instance is replaced, its device fails', { instance, error: problem }),
      modelLost: (problem: string) =>
        log.error('model cannot be executed by this process again', { error: problem }),
      resultDropped: () => log.debug('result dropped, its caller has left', {}),
    }
  }
}
