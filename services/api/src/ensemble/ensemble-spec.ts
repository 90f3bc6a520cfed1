import { listWords } from '@tutti/engines'
import { z } from 'zod'
import {
  Accelerator,
  DisruptionBudget,
  ModelResources,
  ModelRollout,
  POD_FIELDS,
  PodTemplate,
  withoutDevices,
} from '../model/model-pods.ts'
import { EnsembleScaling } from '../model/model-scaling.ts'
import { MaxBatchSize, ResourceInput, TENSORS } from '../model/model-serving.ts'
import { cel, listMap, listSet, mapOf, oneOf, oneOfThree, text } from '../schema/cel.ts'
import {
  Datatype,
  dnsLabel,
  duration,
  servedName,
  TensorShape,
  tensorName,
  whole,
} from '../schema/fields.ts'
import { Constant, ParameterValue } from './constant.ts'
import { EnsembleExpose } from './ensemble-expose.ts'
import { CALLEE, STEP_BUILTIN, STEP_CALL } from './step-call.ts'
import { STEP_REPEAT } from './step-repeat.ts'

const MAX_STEPS = 64

const EnsembleInput = cel(
  ResourceInput.extend({
    default: Constant.optional().describe(
      'Value of an optional input that a request leaves out. A batch has it in every row.',
    ),
  }),
  {
    rule: '!has(self.default) || (has(self.optional) && self.optional)',
    message: 'got it for an input that every request has, want optional: true',
    field: 'default',
  },
)

/** Several references, of which the first that has a tensor counts. */
const firstOf = (description: string) =>
  listSet(tensorName('Reference to a tensor.'), { min: 2, max: 16 }).describe(description)

const EnsembleOutputFields = z.strictObject({
  name: tensorName('Name of the output.'),
  from: tensorName(
    'An ensemble tensor (an input, or a value of some outputMap), else STEP.OUTPUT.',
  ).optional(),
  firstOf: firstOf(
    'References as in `from`: the output is the first of these tensors that is there. Steps that were skipped (`when`) make none.',
  ).optional(),
  optional: z
    .boolean()
    .optional()
    .describe(
      'The response lacks the output where the steps that make it were skipped. Default false: such a request fails.',
    ),
  datatype: Datatype.optional(),
  shape: TensorShape.optional(),
})

const EnsembleOutput = cel(oneOf(EnsembleOutputFields, 'from', 'firstOf'), {
  rule: 'has(self.datatype) == has(self.shape)',
  message: 'want datatype and shape, or neither: then they are those of the tensor',
})

const tensorMap = (value: string, description: string) =>
  mapOf(tensorName(value), { max: 128, isAtomic: true }).describe(description)

const EnsembleStepFields = z.strictObject({
  name: dnsLabel('Name of the step.'),
  ...CALLEE,
  ...STEP_BUILTIN,
  inputMap: tensorMap(
    'Reference to the tensor that feeds the input.',
    "Input of the model -> reference to a tensor, in Triton's direction. A reference is an ensemble tensor (an input, or a value of some outputMap), else STEP.OUTPUT.",
  ).optional(),
  constants: mapOf(Constant, { max: 128, isAtomic: true })
    .optional()
    .describe(
      'Input of the model -> its value in every request. An input of a model that batches has it in every row.',
    ),
  firstOf: mapOf(firstOf('References to tensors.'), { max: 128, isAtomic: true })
    .optional()
    .describe(
      'Input of the model -> references as in `inputMap`, of which it gets the first tensor that is there. Steps that were skipped (`when`) make none.',
    ),
  parameters: mapOf(ParameterValue, { max: 64, isAtomic: true })
    .optional()
    .describe(
      "Parameters that this step's requests have beside those of the client, which they replace.",
    ),
  outputMap: tensorMap(
    'Name of the ensemble tensor.',
    "Output of the model -> name of the ensemble tensor that it makes, in Triton's direction. An output that is not named can be read as STEP.OUTPUT.",
  ).optional(),
  inputs: listSet(tensorName('STEP or STEP.OUTPUT.'), { min: 1, max: 64 })
    .optional()
    .describe(
      'Short for inputs of the same name: STEP stands for every output of that step, STEP.OUTPUT for one. `inputMap` takes precedence.',
    ),
  dependsOn: listSet(dnsLabel('Name of a step.'), { min: 1, max: MAX_STEPS })
    .optional()
    .describe(
      'Steps that must end before this one begins, although it reads none of their outputs.',
    ),
  when: text({ min: 1, max: 2048 })
    .optional()
    .describe(
      'Condition in CEL, over `tensors["STEP.OUTPUT"]` and `parameters["NAME"]`: the step is skipped where it is false. Tensors that a skipped step would make are absent, and so are those of the steps that need them.',
    ),
  ...STEP_REPEAT,
  ...STEP_CALL,
})

export const EnsembleStepSpec = cel(
  oneOfThree(EnsembleStepFields, 'modelRef', 'ensembleRef', 'builtin'),
  {
    rule: 'has(self.inputMap) || has(self.inputs) || has(self.firstOf) || has(self.forEach)',
    message: 'want inputMap, inputs, firstOf or forEach: a step reads something',
  },
  {
    rule: '!has(self.hedge) || has(self.modelRef)',
    message: 'got it for a step that runs no Model, want it with modelRef',
    field: 'hedge',
  },
)
export type EnsembleStepSpec = z.infer<typeof EnsembleStepSpec>

const celNamed = POD_FIELDS.map((field) => `has(self.${field}) ? '${field}'`).join(' : ')

const EnsembleSpecFields = z
  .strictObject({
    modelName: servedName(
      'What clients call the ensemble. Default: metadata.name. It cannot be changed, and is unique among the Models and Ensembles of the namespace.',
    ).optional(),
    maxBatchSize: MaxBatchSize.optional().describe(
      'Largest batch; 0 means that the tensors have no batch dimension. Default 0.',
    ),
    inputs: listMap(EnsembleInput, 'name', TENSORS).describe('Inputs of a request.'),
    outputs: listMap(EnsembleOutput, 'name', TENSORS).describe('Outputs of a response.'),
    steps: listMap(EnsembleStepSpec, 'name', { min: 1, max: MAX_STEPS }).describe(
      'The models that run. Those that do not depend on each other run at the same time.',
    ),
    placement: z
      .enum(['Together'])
      .optional()
      .describe(
        'Together: the Models of its steps run in pods of the Ensemble, each that no other such Ensemble names and that says nothing of pods itself. Default: each Model has pods of its own.',
      ),
    resources: ModelResources.optional().describe(
      'Resources of the container that serves, with `placement: Together`. Default: the sum of those of its Models.',
    ),
    accelerator: Accelerator.optional(),
    scaling: EnsembleScaling.optional(),
    rollout: ModelRollout.optional(),
    disruptionBudget: DisruptionBudget.optional(),
    podTemplate: PodTemplate.optional(),
    timeout: duration('Time for one request. Default: only what the client sets.').optional(),
    maxInFlightRequests: whole(
      1,
      1_000_000,
      'Requests of this ensemble that a router works on at the same time; further ones are refused at once. Default: the bound of the router.',
    ).optional(),
    expose: EnsembleExpose.optional(),
    paused: z
      .boolean()
      .optional()
      .describe(
        'Changes are not accepted while this is true; what is served stays. Default false.',
      ),
  })
  .describe('The graph, and the access to it from outside.')

/** The fields that users write about an ensemble; the schema of the CRD is made from them. */
export const EnsembleSpec = cel(withoutDevices(EnsembleSpecFields), {
  rule: `has(self.placement) || !(${POD_FIELDS.map((field) => `has(self.${field})`).join(' || ')})`,
  message: `got one of ${listWords(POD_FIELDS, 'and')}, want placement: Together beside it: the Ensemble has no pods of its own else`,
  messageExpression: `'got ' + (${celNamed} : '') + ', want placement: Together beside it: the Ensemble has no pods of its own else'`,
  field: 'placement',
})
export type EnsembleSpec = z.infer<typeof EnsembleSpec>
