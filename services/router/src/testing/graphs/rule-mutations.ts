import type { ModelConfig } from '@tutti/model-config'
import { referencePlaces, type StepPlace, stepOf, stepPlaces } from './mutated-places.ts'
import type { Mutant, Mutation, Subject } from './mutation.ts'
import { fedBy } from './sketch.ts'
import type { SpecDraft, StepDraftSpec } from './spec-draft.ts'

/* Mutations of rules: of conditions, repetitions, calls and absent tensors. */

/** Makes mutations of steps. @param at - of the field, behind the path of the step. */
function ofSteps(
  name: string,
  o: {
    readonly isFor: (place: StepPlace) => boolean
    readonly change: (step: StepDraftSpec, place: StepPlace) => void
    readonly reason: string
    readonly at: string | ((place: StepPlace) => string)
  },
): Mutation {
  return {
    name,
    find: ({ ensemble }) =>
      stepPlaces(ensemble)
        .filter(o.isFor)
        .map((place): Mutant => {
          const field = typeof o.at === 'string' ? o.at : o.at(place)
          return {
            change: (spec) => o.change(stepOf(spec, place.index), place),
            reason: o.reason,
            path: `${place.path}${field}`,
          }
        }),
  }
}

const hasWhen = ({ step }: StepPlace): boolean => step.when !== undefined
const hasUntil = ({ step }: StepPlace): boolean => step.loop?.until !== undefined
const hasLoop = ({ step }: StepPlace): boolean => step.loop !== undefined
const hasForEach = ({ step }: StepPlace): boolean => step.forEach !== undefined
const isModel = ({ step }: StepPlace): boolean => step.callee.kind === 'model'
const isPlain = ({ step }: StepPlace): boolean => !step.callee.isDecoupled

/** Conditions that are refused whatever tensors there are. */
const BROKEN: readonly string[] = [
  'score > 1.0',
  '"tier" in parameters && parameters["tier"].matches("(a+)+b")',
  '1 + 1',
  'true &&',
  `${'('.repeat(25)}true${')'.repeat(25)}`,
]

function conditionMutations(): readonly Mutation[] {
  return BROKEN.flatMap((text) => [
    ofSteps(`when: ${text}`, {
      isFor: hasWhen,
      change: (step) => void (step.when = text),
      reason: 'ConditionInvalid',
      at: '.when',
    }),
    ofSteps(`until: ${text}`, {
      isFor: hasUntil,
      change: ({ loop }) => void Object.assign(loop ?? {}, { until: text }),
      reason: 'ConditionInvalid',
      at: '.loop.until',
    }),
  ])
}

/** Makes mutations of Ensembles that have batches all of a sudden. */
function batched(
  name: string,
  o: {
    readonly isFor: (place: StepPlace) => boolean
    readonly reason: string
    readonly at: string
  },
): Mutation {
  return {
    name: `batches with ${name}`,
    find: ({ ensemble }) =>
      stepPlaces(ensemble)
        .filter(o.isFor)
        .map(
          ({ path }): Mutant => ({
            change: (spec) => void (spec.maxBatchSize = 2),
            reason: o.reason,
            path: path + o.at,
          }),
        ),
  }
}

/** Mutations of models into decoupled ones, for which a step has a field that they cannot have. */
function decoupledMutations(): readonly Mutation[] {
  const fields = [
    ['forEach', 'RepeatInvalid'],
    ['loop', 'RepeatInvalid'],
    ['retry', 'CallInvalid'],
    ['hedge', 'CallInvalid'],
    ['onError', 'CallInvalid'],
  ] as const
  return fields.map(([field, reason]): Mutation => {
    return {
      name: `${field} of a decoupled model`,
      find: ({ ensemble, configs }) =>
        stepPlaces(ensemble)
          .filter((place) => isModel(place) && place.written[field] !== undefined)
          .flatMap(({ path, step }): readonly Mutant[] => {
            const config = decoupled(configs.get(step.callee.name))
            return config === undefined
              ? []
              : [{ configs: [config], reason, path: `${path}.${field}` }]
          }),
    }
  })
}

function decoupled(config: ModelConfig | undefined): ModelConfig | undefined {
  return config && { ...config, model_transaction_policy: { decoupled: true } }
}

const WRONG = { datatype: 'FP32', shape: [1], value: [1] }

const isRead = ({ step }: StepPlace, name: string): boolean => step.asked.includes(name)

export const RULE_MUTATIONS: readonly Mutation[] = [
  ...conditionMutations(),
  batched('when', { isFor: hasWhen, reason: 'ConditionInvalid', at: '.when' }),
  batched('forEach', { isFor: hasForEach, reason: 'RepeatInvalid', at: '.forEach' }),
  batched('loop', { isFor: hasLoop, reason: 'RepeatInvalid', at: '.loop' }),
  ...decoupledMutations(),
  ofSteps('forEach beside loop', {
    isFor: hasForEach,
    change: (step, { step: { name, callee } }) => {
      const [input] = callee.inputs
      const carry = { [input?.name ?? '']: `${name}.${callee.outputs[0]?.name}` }
      step.loop = { carry, maxIterations: 2 }
    },
    reason: 'RepeatInvalid',
    at: '.loop',
  }),
  {
    name: 'a count that is no integer',
    find: ({ ensemble }) =>
      stepPlaces(ensemble).flatMap(({ index, path, step }): readonly Mutant[] => {
        const floats = ensemble.inputs.find(({ type }) => type.datatype === 'FP32')
        const isHere = floats !== undefined && fedBy(step).includes(floats.name)
        if (step.forEach === undefined || !isHere) return []
        return [
          {
            change: (spec) =>
              void Object.assign(stepOf(spec, index).forEach ?? {}, { count: floats.name }),
            reason: 'RepeatInvalid',
            path: `${path}.forEach.count`,
          },
        ]
      }),
  },
  ofSteps('no value of an item that failed', {
    isFor: ({ step }) => (step.forEach?.itemDefault?.size ?? 0) > 0,
    change: ({ forEach }) => void Object.assign(forEach?.onItemError ?? {}, { default: {} }),
    reason: 'RepeatInvalid',
    at: '.forEach.onItemError.default',
  }),
  ofSteps('a value of an item for an output that the model lacks', {
    isFor: ({ step }) => step.forEach?.itemDefault !== undefined,
    change: ({ forEach }) =>
      void Object.assign(forEach?.onItemError?.default ?? {}, { nothing: WRONG }),
    reason: 'UnknownTensor',
    at: '.forEach.onItemError.default[nothing]',
  }),
  {
    name: 'lengths without Concat',
    find: ({ ensemble }) =>
      stepPlaces(ensemble).flatMap(({ index, step }): readonly Mutant[] => {
        const places = referencePlaces(ensemble).filter(({ ref }) => ref === `${step.name}.lengths`)
        // It is told where it is given out, else where it is read first.
        const place = places.find(({ path }) => path.endsWith('.from')) ?? places[0]
        if (place === undefined) return []
        return [
          {
            change: (spec) =>
              void Object.assign(stepOf(spec, index).forEach ?? {}, { gather: 'Stack' }),
            reason: 'UnknownTensor',
            path: place.path,
          },
        ]
      }),
  },
  ofSteps('no value that stands in for an output', {
    isFor: ({ step }) => step.onError !== undefined && 'values' in step.onError,
    change: (step) => void (step.onError = { default: {} }),
    reason: 'CallInvalid',
    at: '.onError.default',
  }),
  ofSteps('a value that stands in for what nothing reads', {
    isFor: ({ step }) => step.onError !== undefined && 'values' in step.onError,
    change: ({ onError }) => void Object.assign(onError?.default ?? {}, { nothing: WRONG }),
    reason: 'UnknownTensor',
    at: '.onError.default[nothing]',
  }),
  ofSteps('retry of what may have run', {
    isFor: isPlain,
    change: (step) => {
      step.retry = { maxRetries: 1, retryOn: ['INTERNAL'] }
      delete step.hedge
      delete step.mayRunTwice
    },
    reason: 'CallInvalid',
    at: '.retry.retryOn',
  }),
  ofSteps('hedge of what may not run twice', {
    isFor: (place) => isModel(place) && isPlain(place),
    change: (step) => {
      step.hedge = { after: '1s' }
      delete step.mayRunTwice
      delete step.retry
    },
    reason: 'CallInvalid',
    at: '.hedge',
  }),
  ofSteps('a parameter that only requests have', {
    isFor: () => true,
    change: (step) => void (step.parameters = { priority: 1 }),
    reason: 'InvalidSpec',
    at: '.parameters[priority]',
  }),
  ...fallbackMutations(),
  ...absenceMutations(),
  ...streamMutations(),
]

/** Lists the fallbacks that are models. */
function fallbacksOf({ ensemble, configs }: Subject) {
  return stepPlaces(ensemble).flatMap((place) => {
    const config = configs.get(place.written.onError?.fallback?.modelRef?.name ?? '')
    return config === undefined ? [] : [{ place, config }]
  })
}

function fallbackMutations(): readonly Mutation[] {
  return [
    {
      name: 'a decoupled fallback',
      find: (subject) =>
        fallbacksOf(subject).map(({ place, config }): Mutant => {
          const changed = { ...config, model_transaction_policy: { decoupled: true } }
          const path = `${place.path}.onError.fallback`
          return { configs: [changed], reason: 'CallInvalid', path }
        }),
    },
    {
      name: 'a fallback that lacks an output',
      find: (subject) =>
        fallbacksOf(subject)
          .filter(({ place, config }) => config.output.some(({ name }) => isRead(place, name)))
          .map(({ place, config }): Mutant => {
            const output = config.output.map((one) => ({ ...one, name: `other_${one.name}` }))
            const path = `${place.path}.onError.fallback.modelRef`
            return { configs: [{ ...config, output }], reason: 'UnknownTensor', path }
          }),
    },
    {
      name: 'a fallback that takes more',
      find: (subject) =>
        fallbacksOf(subject).map(({ place, config }): Mutant => {
          const [like] = config.input
          const more = like === undefined ? [] : [{ ...like, name: 'more', optional: false }]
          const changed = { ...config, input: [...config.input, ...more] }
          const path = `${place.path}.onError.fallback`
          return { configs: [changed], reason: 'MissingInput', path }
        }),
    },
    {
      name: 'a fallback with batches for a step without',
      find: (subject) =>
        fallbacksOf(subject)
          .filter(({ place }) => !hasForEach(place))
          .map(({ place, config }): Mutant => {
            const changed = { ...config, max_batch_size: 4 }
            const path = `${place.path}.onError.fallback`
            return { configs: [changed], reason: 'CallInvalid', path }
          }),
    },
  ]
}

function absenceMutations(): readonly Mutation[] {
  return [
    {
      name: 'an output that some responses would lack',
      find: ({ ensemble }) =>
        ensemble.outputs.flatMap(({ name, from }, i): readonly Mutant[] => {
          const maker = ensemble.steps.find((step) => from[0]?.startsWith(`${step.name}.`) === true)
          if (from.length > 1 || maker?.when === undefined) return []
          const change = ({ outputs }: SpecDraft): void => void delete outputs[i]?.optional
          return [{ change, reason: 'OutputInvalid', path: `outputs[${i}](${name}).from` }]
        }),
    },
    {
      name: 'a tensor behind one that is always there',
      find: ({ ensemble }) =>
        stepPlaces(ensemble).flatMap(({ index, path, step }): readonly Mutant[] => {
          // An input is always there.
          const input = step.inputs.find(({ from, isItem }) => {
            const [ref] = 'datatype' in from ? [] : from
            return !isItem && ref !== undefined && !ref.includes('.')
          })
          const [ref] = input === undefined || 'datatype' in input.from ? [] : input.from
          const like = ensemble.inputs.find(({ name }) => name === ref)
          const other = ensemble.inputs.find(
            ({ name, type }) =>
              name !== ref &&
              type.datatype === like?.type.datatype &&
              type.dims.join() === like.type.dims.join(),
          )
          if (input === undefined || ref === undefined || other === undefined) return []
          return [
            {
              change: (spec) => {
                const own = stepOf(spec, index)
                delete own.inputMap?.[input.name]
                own.firstOf = { ...own.firstOf, [input.name]: [ref, other.name] }
              },
              reason: 'ConditionInvalid',
              path: `${path}.firstOf[${input.name}]`,
            },
          ]
        }),
    },
  ]
}

function streamMutations(): readonly Mutation[] {
  return [
    {
      name: 'a step that waits for the last response of a stream',
      find: ({ ensemble }) =>
        stepPlaces(ensemble)
          .filter(({ index, step }) => step.callee.isDecoupled && index < ensemble.steps.length - 1)
          .map(({ index, step }): Mutant => {
            return {
              change: (spec) => {
                const next = stepOf(spec, index + 1)
                next.dependsOn = [...(next.dependsOn ?? []), step.name]
              },
              reason: 'DecoupledInvalid',
              path: 'steps',
            }
          }),
    },
    {
      name: 'a tensor of the request beside those of a stream',
      find: ({ ensemble }) => {
        const at = ensemble.steps.findIndex(({ callee }) => callee.isDecoupled)
        const [input] = ensemble.inputs
        const next = ensemble.steps[at + 1]
        // A step that may be skipped already, so that nothing else is wrong.
        if (at === -1 || input === undefined || next?.when === undefined) return []
        return [
          {
            change: (spec) =>
              void (stepOf(spec, at + 1).when = `size(tensors["${input.name}"]) >= 0`),
            reason: 'DecoupledInvalid',
            path: 'steps',
          },
        ]
      },
    },
  ]
}
