import { toDescriptionJson, toStatisticsJson } from '@tutti/ensemble'
import { ServeError } from '@tutti/errors'
import type { StepPeerOptions } from '@tutti/transport'
import type { Step } from '../step.ts'

/** What a step says of itself and answers over the broker. */
export function toPeerOptions(
  step: Step,
): Pick<StepPeerOptions, 'handle' | 'answer' | 'revisions' | 'load' | 'onChange'> {
  return {
    handle: step.handle,
    answer: async (question, argument) => {
      if (question === 'describe') return toDescriptionJson(await step.control.describe())
      const { model, version } = toFilter(argument)
      return toStatisticsJson(await step.control.statistics(model, version))
    },
    revisions: () =>
      step
        .served()
        .flatMap(({ name, versions }) =>
          versions
            .filter((v) => v.state === 'READY')
            .map((v) => [name, v.version, v.revision] as const),
        ),
    load: () => {
      const { inFlight, freeSlots, models } = step.load()
      return { inFlight, freeSlots, queued: models.reduce((sum, m) => sum + m.queued, 0) }
    },
    onChange: (listener) => step.onChange(listener),
  }
}

/** The argument of `statistics`; what is left out selects all. @throws ServeError MALFORMED_MESSAGE */
function toFilter(argument: unknown): { readonly model: string; readonly version: string } {
  if (argument === undefined || argument === null) return { model: '', version: '' }
  if (typeof argument !== 'object') throw malformed(argument)
  const { model = '', version = '' } = { model: undefined, version: undefined, ...argument }
  if (typeof model !== 'string' || typeof version !== 'string') throw malformed(argument)
  return { model, version }
}

function malformed(argument: unknown): ServeError {
  return new ServeError(
    'MALFORMED_MESSAGE',
    `question "statistics": got ${JSON.stringify(argument)}, want {model, version} as texts`,
  )
}
