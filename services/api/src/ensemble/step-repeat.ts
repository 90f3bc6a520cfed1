import { z } from 'zod'
import { cel, mapOf, text } from '../schema/cel.ts'
import { tensorName, whole } from '../schema/fields.ts'
import { Constant } from './constant.ts'

const MAX_ITEMS = 65_536

const notEmpty = (field: string, message: string) => ({
  rule: `size(self.${field}) > 0`,
  message,
  field,
})

const references = (description: string) =>
  mapOf(tensorName('Reference to a tensor.'), { max: 128, isAtomic: true }).describe(description)

const ForEachFields = z.strictObject({
  items: references(
    'Input of the model -> reference to the tensor whose rows along axis 0 are the items. All have the same number of rows. An input that is here stands nowhere else; the other inputs go to each item unchanged.',
  ),
  count: tensorName(
    'Reference to an integer scalar, or a tensor of one integer: only so many of the first items are real. Default: all.',
  ).optional(),
  maxItems: whole(1, MAX_ITEMS, 'Most items of a request; one with more fails.'),
  maxParallel: whole(
    1,
    1024,
    'Calls of one request that are made at the same time, over all replicas: of one item each, or of a batch of them if the model batches. Default 16.',
  ).optional(),
  onItemError: z
    .strictObject({
      default: mapOf(Constant, { max: 128, isAtomic: true }).describe(
        'Output of the model -> its value for an item that failed.',
      ),
    })
    .optional()
    .describe(
      'Goes on without an item that failed; its batch fails with it. STEP.failed is then BOOL[N]. Default: the step fails, and the other items are cancelled.',
    ),
  gather: z
    .enum(['Stack', 'Concat'])
    .optional()
    .describe(
      'Stack: outputs of one shape become [N, ...]. Concat: they are joined along axis 0, and STEP.lengths, INT64[N], has how much of it each item made. Default Stack.',
    ),
})

const LoopFields = z.strictObject({
  carry: references(
    'Input of the model -> reference to an output of this step, which it gets from the second iteration on.',
  ),
  until: text({ min: 1, max: 2048 })
    .optional()
    .describe(
      'Condition in CEL as in `when`, which may also read the outputs of this step: the loop ends with the iteration after which it is true. Default: after maxIterations.',
    ),
  maxIterations: whole(
    1,
    10_000,
    'Most iterations. The loop ends with the last one, whether or not `until` is true.',
  ),
})

/** The fields of a step that runs several times for one request. */
export const STEP_REPEAT = {
  forEach: cel(ForEachFields, notEmpty('items', 'want an input to be cut'))
    .optional()
    .describe(
      'Runs the step once for each item of its inputs, and gathers the outputs in the order of the items.',
    ),
  loop: cel(LoopFields, notEmpty('carry', 'want an input that an iteration hands to the next'))
    .optional()
    .describe(
      'Runs the step again and again with what it made; the outputs of the last iteration are its outputs.',
    ),
}
