import { DATATYPES, isDatatype } from '@tutti/tensor'
import { z } from 'zod'

/** A tensor whose value stands in the graph. The elements were checked against the datatype. */
export const Constant = z.object({
  datatype: z.enum(Object.keys(DATATYPES).filter(isDatatype)),
  /** Without a batch dimension. */
  shape: z.array(z.int().min(0)).readonly(),
  value: z.array(z.union([z.number(), z.string(), z.boolean()])).readonly(),
})
export type Constant = Readonly<z.infer<typeof Constant>>
