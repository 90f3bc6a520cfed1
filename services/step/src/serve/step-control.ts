import { ServeError } from '@tutti/errors'
import { type LoadParameters, type ModelControl, pollFailed } from '@tutti/front-door'
import type { AnswerQuestion } from '@tutti/transport'
import type { Step } from '../step.ts'
import type { OwnModels } from './loadable-models.ts'

/** Loads and unloads the models that a step may serve, for routers and for clients of its own doors. */
export class StepModelControl implements ModelControl {
  readonly #step: Step
  readonly #own: OwnModels
  readonly #replica: string

  constructor(o: { readonly step: Step; readonly own: OwnModels; readonly replica: string }) {
    this.#step = o.step
    this.#own = o.own
    this.#replica = o.replica
  }

  async load(name: string, parameters: LoadParameters): Promise<void> {
    if (!this.#own.may(name)) {
      const text = `step '${this.#replica}' may not serve it`
      throw pollFailed(name, new ServeError('MODEL_NOT_FOUND', text))
    }
    const isOverridden = parameters.config !== undefined || parameters.files.size > 0
    await this.#step.models.load(name, isOverridden ? parameters : undefined)
  }

  /** A step knows no ensembles, so nothing else goes with a model. */
  async unload(name: string): Promise<void> {
    this.#step.models.unload(name)
  }

  /** For routers: a load is answered with the versions that serve now, [version, revision] each. */
  readonly answer: AnswerQuestion = async (question, argument, { files }) => {
    const { model, config } = readArgument(question, argument)
    if (question === 'unload') {
      await this.unload(model)
      return []
    }
    await this.load(model, { files, ...(config !== undefined && { config }) })
    const served = this.#step.served().find(({ name }) => name === model)
    const ready = served?.versions.filter(({ state }) => state === 'READY') ?? []
    return ready.map(({ version, revision }) => [version, revision])
  }
}

/** @throws ServeError MALFORMED_MESSAGE unless it is {model, config} with texts; config may be absent. */
function readArgument(
  question: string,
  argument: unknown,
): { readonly model: string; readonly config: string | undefined } {
  if (typeof argument === 'object' && argument !== null && 'model' in argument) {
    const { model, config } = { config: undefined, ...argument }
    const isConfig = config === undefined || typeof config === 'string'
    if (typeof model === 'string' && isConfig) return { model, config }
  }
  throw new ServeError(
    'MALFORMED_MESSAGE',
    `question "${question}": want {model, config} as texts, config may be absent`,
  )
}
