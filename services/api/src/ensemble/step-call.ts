import { z } from 'zod'
import { duration, whole } from '../schema/fields.ts'

/** The fields of a step that are about its call. */
export const STEP_CALL = {
  timeout: duration(
    'Time until the last response of the step, over all attempts. The deadline of the request may be sooner.',
  ).optional(),
  hedge: z
    .strictObject({
      after: duration('Time without an answer after which a second replica is asked.'),
      maxPercent: whole(
        1,
        100,
        'Most requests of which a second replica is asked, in percent. Default 5.',
      ).optional(),
    })
    .optional()
    .describe(
      'Asks a second replica of the Model too if the first one does not answer in time, and takes the first answer. Only for a Model that may execute a request twice, that keeps no state, and that is not decoupled.',
    ),
}
