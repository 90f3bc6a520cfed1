import { referencePlaces, stepOf, stepPlaces } from './mutated-places.ts'
import type { Mutant, Mutation } from './mutation.ts'
import type { StepSketch } from './sketch.ts'

/* Mutations of names: of tensors, steps, models, and inputs and outputs. */

const isMade = (ref: string): boolean => ref.includes('.')

export const REFERENCE_MUTATIONS: readonly Mutation[] = [
  {
    name: 'a reference to a step that is not there',
    find: ({ ensemble }) =>
      referencePlaces(ensemble).map(
        ({ path, replace }): Mutant => ({
          change: (spec) => replace(spec, 'nobody.o0'),
          reason: 'UnknownStep',
          path,
        }),
      ),
  },
  {
    name: 'a reference to an output that its step lacks',
    find: ({ ensemble }) =>
      referencePlaces(ensemble)
        .filter(({ ref }) => isMade(ref))
        .map(
          ({ path, ref, replace }): Mutant => ({
            change: (spec) => replace(spec, `${ref.split('.')[0]}.nothing`),
            reason: 'UnknownTensor',
            path,
          }),
        ),
  },
  {
    name: 'a reference to a tensor that is not there',
    find: ({ ensemble }) =>
      referencePlaces(ensemble).map(
        ({ path, replace }): Mutant => ({
          change: (spec) => replace(spec, 'nothing'),
          reason: 'UnknownTensor',
          path,
        }),
      ),
  },
  {
    name: 'dependsOn a step that is not there',
    find: ({ ensemble }) =>
      stepPlaces(ensemble).map(
        ({ index, path }): Mutant => ({
          change: (spec) => void (stepOf(spec, index).dependsOn = ['nobody']),
          reason: 'UnknownStep',
          path: `${path}.dependsOn[0]`,
        }),
      ),
  },
  {
    name: 'a step waits for itself',
    find: ({ ensemble }) =>
      stepPlaces(ensemble).map(
        ({ index, path, step }): Mutant => ({
          change: (spec) => void (stepOf(spec, index).dependsOn = [step.name]),
          reason: 'CycleDetected',
          path: `${path}.dependsOn[0]`,
        }),
      ),
  },
  {
    name: 'two steps wait for each other',
    find: ({ ensemble }) =>
      stepPlaces(ensemble).flatMap(({ step }): readonly Mutant[] => {
        const before = ensemble.steps.findIndex(({ name }) => makerOf(step) === name)
        if (before === -1) return []
        return [
          {
            change: (spec) => {
              const earlier = stepOf(spec, before)
              earlier.dependsOn = [...(earlier.dependsOn ?? []), step.name]
            },
            reason: 'CycleDetected',
            path: `steps[${before}](${ensemble.steps[before]?.name})`,
          },
        ]
      }),
  },
  {
    name: 'an input that the model lacks',
    find: ({ ensemble }) =>
      stepPlaces(ensemble).flatMap(({ index, path, written }): readonly Mutant[] => {
        const [entry] = Object.entries(written.inputMap ?? {})
        if (entry === undefined) return []
        return [
          {
            change: (spec) => {
              const { inputMap = {} } = stepOf(spec, index)
              inputMap['nothing'] = entry[1]
            },
            reason: 'UnknownTensor',
            path: `${path}.inputMap[nothing]`,
          },
        ]
      }),
  },
  {
    name: 'an item of an input that the model lacks',
    find: ({ ensemble }) =>
      stepPlaces(ensemble).flatMap(({ index, path, written }): readonly Mutant[] => {
        const [ref] = Object.values(written.forEach?.items ?? {})
        if (ref === undefined) return []
        return [
          {
            change: (spec) =>
              void Object.assign(stepOf(spec, index).forEach?.items ?? {}, { nothing: ref }),
            reason: 'UnknownTensor',
            path: `${path}.forEach.items[nothing]`,
          },
        ]
      }),
  },
  {
    name: 'a constant for an input that the model lacks',
    find: ({ ensemble }) =>
      stepPlaces(ensemble).map(
        ({ index, path }): Mutant => ({
          change: (spec) => {
            const step = stepOf(spec, index)
            step.constants = { ...step.constants, nothing: ONE }
          },
          reason: 'UnknownTensor',
          path: `${path}.constants[nothing]`,
        }),
      ),
  },
  {
    name: 'an input that is fed twice',
    find: ({ ensemble }) =>
      stepPlaces(ensemble).flatMap(({ index, path, written }): readonly Mutant[] => {
        const [input] = Object.keys(written.inputMap ?? {})
        if (input === undefined) return []
        return [
          {
            change: (spec) => {
              const step = stepOf(spec, index)
              step.constants = { ...step.constants, [input]: ONE }
            },
            reason: 'MultipleProducers',
            path: `${path}.constants[${input}]`,
          },
        ]
      }),
  },
  {
    name: 'a required input that nothing feeds',
    find: ({ ensemble }) =>
      stepPlaces(ensemble).flatMap(({ index, path, step, written }): readonly Mutant[] => {
        const names = Object.keys(written.inputMap ?? {})
        const required = step.callee.inputs.filter(
          ({ name, optional }) => names.includes(name) && !optional,
        )
        const isAlone = step.inputs.filter(({ from }) => !('datatype' in from)).length < 2
        if (isAlone) return []
        return required.map(({ name }) => ({
          change: (spec) => {
            const { inputMap = {} } = stepOf(spec, index)
            delete inputMap[name]
          },
          reason: 'MissingInput',
          path,
        }))
      }),
  },
  ...carryMutations(),
  ...calleeMutations(),
  {
    name: 'an output that is given out twice',
    find: ({ ensemble }) =>
      ensemble.outputs
        .filter(({ from }) => from.length === 1)
        .map(({ name }): Mutant => {
          return {
            change: ({ outputs }) => {
              const output = outputs.find((one) => one.name === name)
              if (output !== undefined) outputs.push({ ...output, name: 'again' })
            },
            reason: 'OutputInvalid',
            path: `outputs[${ensemble.outputs.length}].from`,
          }
        }),
  },
  {
    name: 'an input that nothing reads',
    find: ({ ensemble }) => [
      {
        change: ({ inputs }) => void inputs.push({ name: 'unread', datatype: 'FP32', shape: [1] }),
        reason: 'UnusedInput',
        path: `inputs[${ensemble.inputs.length}](unread)`,
      },
    ],
  },
  {
    name: 'a step of which nothing is read',
    find: ({ ensemble }) =>
      stepPlaces(ensemble)
        .filter(({ step }) => step.loop === undefined && step.onError === undefined)
        .map(
          ({ index }): Mutant => ({
            change: ({ steps }) => {
              const copy = structuredClone(steps[index])
              if (copy !== undefined) steps.push({ ...copy, name: 'copy' })
            },
            reason: 'UnreachableStep',
            path: `steps[${ensemble.steps.length}](copy)`,
          }),
        ),
  },
]

const ONE = { datatype: 'FP32', shape: [1], value: [1] }

/** Returns the name of a step that makes what a step reads. */
function makerOf({ inputs }: StepSketch): string | undefined {
  const refs = inputs.flatMap(({ from }) => ('datatype' in from ? [] : from))
  return refs.find(isMade)?.split('.')[0]
}

/** Makes a mutation of what a loop carries. @param entry - input, '' for the same, and reference in its place. */
function carried(
  name: string,
  entry: (output: string, step: string) => readonly [string, string] | undefined,
  reason: string,
): Mutation {
  return {
    name,
    find: ({ ensemble }) =>
      stepPlaces(ensemble).flatMap(({ index, path, step }): readonly Mutant[] => {
        const [first] = step.loop?.carry ?? []
        const made = first && entry(first.output, step.name)
        if (first === undefined || made === undefined) return []
        const [input, ref] = made
        const name = input === '' ? first.input : input
        return [
          {
            change: (spec) =>
              void Object.assign(stepOf(spec, index).loop?.carry ?? {}, { [name]: ref }),
            reason,
            path: `${path}.loop.carry[${name}]`,
          },
        ]
      }),
  }
}

function carryMutations(): readonly Mutation[] {
  return [
    carried(
      'carry of an output that the model lacks',
      (_, step) => ['', `${step}.nothing`],
      'UnknownTensor',
    ),
    carried(
      'carry to an input that the model lacks',
      (output, step) => ['nothing', `${step}.${output}`],
      'UnknownTensor',
    ),
    carried(
      'carry of a step that is not there',
      (output) => ['', `nobody.${output}`],
      'UnknownStep',
    ),
    {
      name: 'carry of what another step makes',
      find: ({ ensemble }) =>
        stepPlaces(ensemble).flatMap(({ index, path, step }): readonly Mutant[] => {
          const [first] = step.loop?.carry ?? []
          const refs = step.inputs.flatMap(({ from }) => ('datatype' in from ? [] : from))
          const other = refs.find(isMade)
          if (first === undefined || other === undefined) return []
          return [
            {
              change: (spec) =>
                void Object.assign(stepOf(spec, index).loop?.carry ?? {}, {
                  [first.input]: other,
                }),
              reason: 'RepeatInvalid',
              path: `${path}.loop.carry[${first.input}]`,
            },
          ]
        }),
    },
  ]
}

function calleeMutations(): readonly Mutation[] {
  return [
    {
      name: 'a model that is not there',
      find: ({ ensemble }) =>
        stepPlaces(ensemble).map(({ index, path, step }): Mutant => {
          const field = step.callee.kind === 'model' ? 'modelRef' : 'ensembleRef'
          return {
            change: (spec) =>
              void Object.assign(stepOf(spec, index)[field] ?? {}, { name: 'gone' }),
            reason: 'UnknownModel',
            path: `${path}.${field}.name`,
          }
        }),
    },
    {
      name: 'a Model for an Ensemble, or the other way round',
      find: ({ ensemble }) =>
        stepPlaces(ensemble).map(({ index, path, step }): Mutant => {
          const { kind, name } = step.callee
          const field = kind === 'model' ? 'ensembleRef' : 'modelRef'
          return {
            change: (spec) => {
              const own = stepOf(spec, index)
              delete own.modelRef
              delete own.hedge
              delete own.ensembleRef
              own[field] = { name }
            },
            reason: 'UnknownModel',
            path: `${path}.${field}`,
          }
        }),
    },
    {
      name: 'a version that is not served',
      find: ({ ensemble }) =>
        stepPlaces(ensemble)
          .filter(({ step }) => step.callee.kind === 'model')
          .map(
            ({ index, path }): Mutant => ({
              change: (spec) =>
                void Object.assign(stepOf(spec, index).modelRef ?? {}, { version: 9 }),
              reason: 'UnknownModel',
              path: `${path}.modelRef.version`,
            }),
          ),
    },
    {
      name: 'a model that is not known yet',
      find: ({ ensemble }) =>
        stepPlaces(ensemble).map(
          ({ path, step }): Mutant => ({
            pending: [step.callee.name],
            reason: 'SchemaPending',
            path: `${path}.${step.callee.kind === 'model' ? 'modelRef' : 'ensembleRef'}`,
          }),
        ),
    },
    {
      name: 'an Ensemble within itself',
      find: ({ ensemble }) =>
        stepPlaces(ensemble).map(
          ({ index, path }): Mutant => ({
            change: (spec) => {
              const own = stepOf(spec, index)
              delete own.modelRef
              delete own.hedge
              own.ensembleRef = { name: ensemble.name }
            },
            reason: 'CycleDetected',
            path: `${path}.ensembleRef`,
          }),
        ),
    },
    {
      name: 'a fallback that is not there',
      find: ({ ensemble }) =>
        stepPlaces(ensemble).flatMap(({ index, path, written }): readonly Mutant[] => {
          const { fallback } = written.onError ?? {}
          if (fallback === undefined) return []
          const field = fallback.modelRef === undefined ? 'ensembleRef' : 'modelRef'
          return [
            {
              change: (spec) =>
                void Object.assign(stepOf(spec, index).onError?.fallback?.[field] ?? {}, {
                  name: 'gone',
                }),
              reason: 'UnknownModel',
              path: `${path}.onError.fallback.${field}.name`,
            },
          ]
        }),
    },
  ]
}
