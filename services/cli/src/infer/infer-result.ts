import { readonlyListOf } from '@tutti/command-line/results'
import { z } from 'zod'

const InferOutput = z.object({
  name: z.string(),
  datatype: z.string(),
  shape: readonlyListOf(z.int()),
  data: z.unknown().meta({
    description:
      'All elements, in nested arrays as the shape has them; absent if they went to a file. NaN and infinities are null, integers beyond 2^53 texts, and texts that are no UTF-8 {"base64": ...}.',
  }),
  file: z.string().exactOptional().meta({ description: 'Where the output was written.' }),
})

/** The result that `tutti infer` prints as JSON for each response, a line each. */
export const InferResult = z
  .object({
    model: z.string(),
    version: z.string(),
    id: z.string(),
    outputs: readonlyListOf(InferOutput.partial({ data: true })),
  })
  .meta({ title: 'A response, of which tutti infer prints one in each line' })
export type InferResult = z.infer<typeof InferResult>
