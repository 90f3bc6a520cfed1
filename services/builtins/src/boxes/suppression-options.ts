import { z } from 'zod'

const MAX_OUTPUTS = 2 ** 16

/** Options of built-ins that keep the best of boxes that overlap. */
export const suppressionOptions = {
  scoreThreshold: z.number().default(0.25).describe('Boxes up to this score are left out'),
  iouThreshold: z
    .number()
    .min(0)
    .max(1)
    .default(0.45)
    .describe(
      'Of two boxes whose intersection over union is greater, the one of the lower score is left out',
    ),
  maxOutputs: z
    .int()
    .min(1)
    .max(MAX_OUTPUTS)
    .default(300)
    .describe('Most boxes of the output: those of the highest scores'),
}
