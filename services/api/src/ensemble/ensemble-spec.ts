import { z } from 'zod'
import { MaxBatchSize, ResourceInput, TENSORS } from '../model/model-serving.ts'
import { cel, listMap, listSet, mapOf, oneOf } from '../schema/cel.ts'
import {
  Datatype,
  dnsLabel,
  duration,
  servedName,
  TensorShape,
  tensorName,
  whole,
} from '../schema/fields.ts'
import { EnsembleExpose } from './ensemble-expose.ts'
import { CALLEE, STEP_CALL } from './step-call.ts'

const MAX_STEPS = 64

const EnsembleOutput = cel(
  z.strictObject({
    name: tensorName('Name of the output.'),
    from: tensorName(
      'An ensemble tensor (an input, or a value of some outputMap), else STEP.OUTPUT.',
    ),
    datatype: Datatype.optional(),
    shape: TensorShape.optional(),
  }),
  {
    rule: 'has(self.datatype) == has(self.shape)',
    message: 'want datatype and shape, or neither: then they are those of the tensor',
  },
)

const tensorMap = (value: string, description: string) =>
  mapOf(tensorName(value), { max: 128, isAtomic: true }).describe(description)

const EnsembleStepFields = z.strictObject({
  name: dnsLabel('Name of the step.'),
  ...CALLEE,
  inputMap: tensorMap(
    'Reference to the tensor that feeds the input.',
    "Input of the model -> reference to a tensor, in Triton's direction. A reference is an ensemble tensor (an input, or a value of some outputMap), else STEP.OUTPUT.",
  ).optional(),
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
  ...STEP_CALL,
})

export const EnsembleStepSpec = cel(
  oneOf(EnsembleStepFields, 'modelRef', 'ensembleRef'),
  {
    rule: 'has(self.inputMap) || has(self.inputs)',
    message: 'want inputMap or inputs: a step reads something',
  },
  {
    rule: '!has(self.hedge) || has(self.modelRef)',
    message: 'got it for an Ensemble, want it for the steps of that Ensemble',
    field: 'hedge',
  },
)
export type EnsembleStepSpec = z.infer<typeof EnsembleStepSpec>

/** The fields that users write about an ensemble; the schema of the CRD is made from them. */
export const EnsembleSpec = z
  .strictObject({
    modelName: servedName(
      'What clients call the ensemble. Default: metadata.name. It cannot be changed, and is unique among the Models and Ensembles of the namespace.',
    ).optional(),
    maxBatchSize: MaxBatchSize.optional().describe(
      'Largest batch; 0 means that the tensors have no batch dimension. Default 0.',
    ),
    inputs: listMap(ResourceInput, 'name', TENSORS).describe('Inputs of a request.'),
    outputs: listMap(EnsembleOutput, 'name', TENSORS).describe('Outputs of a response.'),
    steps: listMap(EnsembleStepSpec, 'name', { min: 1, max: MAX_STEPS }).describe(
      'The models that run. Those that do not depend on each other run at the same time.',
    ),
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
export type EnsembleSpec = z.infer<typeof EnsembleSpec>
