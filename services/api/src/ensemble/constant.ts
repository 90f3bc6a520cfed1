import { ServeError } from '@tutti/errors'
import { elementCount, encodeElements } from '@tutti/tensor'
import { z } from 'zod'
import { listAtomic, text, told } from '../schema/cel.ts'
import { Datatype } from '../schema/fields.ts'

const MAX_ELEMENTS = 4096

/** A number, a text, true or false. CRDs have no type for all of them, so CEL does not see it. */
const ScalarValue = z
  .union([z.number(), text({ max: 65_536 }), z.boolean()])
  .meta({ 'x-kubernetes-preserve-unknown-fields': true })

const ConstantFields = z.strictObject({
  datatype: Datatype,
  value: listAtomic(ScalarValue, { max: MAX_ELEMENTS }).describe(
    'The elements, row-major: numbers, true or false for BOOL, texts for BYTES. An integer beyond 2^53 is a text, and so are NaN and Infinity.',
  ),
  shape: listAtomic(z.int().min(0).max(2_147_483_647), { max: 32 })
    .optional()
    .describe('Extents, outermost first. Default: one dimension with all elements.'),
})

/** A tensor that stands in a manifest. Its elements fit its datatype and its shape. */
export const Constant = told<typeof ConstantFields>(ConstantFields, {
  holds: (constant) => constantFault(constant) === undefined,
  text: (constant) => constantFault(constant) ?? '',
})
export type Constant = z.infer<typeof Constant>

function constantFault({ datatype, value, shape }: z.infer<typeof ConstantFields>) {
  if (shape !== undefined && elementCount(shape) !== value.length) {
    return `got ${value.length} elements, want ${elementCount(shape)} for the shape [${shape.join(',')}]`
  }
  try {
    encodeElements(datatype, value)
    return undefined
  } catch (error) {
    return ServeError.from(error).message
  }
}

/** A value of a parameter. */
export const ParameterValue = ScalarValue
