import { toDescriptionJson, toStatisticsJson } from '@tutti/api'
import { ServeError } from '@tutti/errors'
import { PART_HOST } from '@tutti/graph'
import type { Json } from '@tutti/model-config'
import type { Question, StepEndpointOptions } from '@tutti/transport'
import type { Step } from '../step.ts'

const PARTS = [PART_HOST.model, PART_HOST.version, PART_HOST.revision] as const

/** Makes the description of a step and its answers to questions over the broker. */
export function toEndpointOptions(
  step: Step,
  own: { readonly replica: string; readonly host?: string },
): Pick<StepEndpointOptions, 'executor' | 'answer' | 'revisions' | 'load' | 'onChange'> & {
  describe(): Json
} {
  return {
    executor: step.executor,
    describe: () => toDescriptionJson({ ...own, models: step.served() }),
    answer: async (question, argument) => {
      if (question === 'statistics') {
        const { model, version } = toFilter(question, argument)
        return toStatisticsJson(await step.control.statistics(model, version))
      }
      if (question === 'ready') {
        const { model, version } = toFilter(question, argument)
        return await step.control.isReady(model, Number(version))
      }
      throw new ServeError('UNSUPPORTED', `question '${question}' is not for this step`)
    },
    // A replaced version still takes the requests that pinned it: routers with such requests have to find it.
    revisions: () => {
      const all = [...readyRevisions(step), ...step.retired()]
      // A process with one model has no part of a graph.
      const models = new Set(all.map(([model]) => model))
      return step.runsParts && models.size > 1 ? [...all, PARTS] : all
    },
    load: () => {
      const { inFlight, freeSlots, models } = step.load()
      return { inFlight, freeSlots, queued: models.reduce((sum, m) => sum + m.queued, 0) }
    },
    onChange: (listener) => step.onChange(listener),
  }
}

function readyRevisions(step: Step): readonly (readonly [string, number, string])[] {
  return step
    .served()
    .flatMap(({ name, versions }) =>
      versions
        .filter((v) => v.state === 'READY')
        .map((v) => [name, v.version, v.revision] as const),
    )
}

/** Reads the argument of `statistics` and `ready`; an absent field selects all. @throws ServeError MALFORMED_MESSAGE */
function toFilter(
  question: Question,
  argument: unknown,
): { readonly model: string; readonly version: string } {
  if (argument === undefined || argument === null) return { model: '', version: '' }
  if (typeof argument !== 'object') throw malformed(question, argument)
  const { model = '', version = '' } = { model: undefined, version: undefined, ...argument }
  if (typeof model === 'string' && typeof version === 'string') return { model, version }
  throw malformed(question, argument)
}

function malformed(question: Question, argument: unknown): ServeError {
  return new ServeError(
    'MALFORMED_MESSAGE',
    `question "${question}": got ${JSON.stringify(argument)}, want {model, version} as texts`,
  )
}
