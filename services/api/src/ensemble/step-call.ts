import { STATUS_CODES, type StatusCode } from '@tutti/errors'
import { z } from 'zod'
import { listSet, mapOf, oneOf, text } from '../schema/cel.ts'
import { duration, servedName, whole } from '../schema/fields.ts'
import { Constant } from './constant.ts'

type RetryCode = Exclude<StatusCode, 'CANCELLED'>

/** Codes of failures after which a step may be tried again: all but that of a caller that is gone. */
export const RETRY_CODES = Object.keys(STATUS_CODES).filter(
  (code): code is RetryCode => code !== 'CANCELLED',
)

/** The fields by which a step, or its fallback, names what it runs: one of them. */
export const CALLEE = {
  modelRef: z
    .strictObject({
      name: servedName('Served name (modelName) of the Model.'),
      version: whole(
        0,
        Number.MAX_SAFE_INTEGER,
        'Default: the latest version that is ready.',
      ).optional(),
    })
    .optional()
    .describe('The Model that the step runs.'),
  ensembleRef: z
    .strictObject({ name: servedName('Served name (modelName) of the Ensemble.') })
    .optional()
    .describe('The Ensemble that the step runs.'),
}

/** The field by which a step names a built-in, in place of a Model or an Ensemble. */
export const STEP_BUILTIN = {
  builtin: z
    .looseObject({
      name: text({ min: 1, max: 64 }).describe('Name of the built-in.'),
      model: servedName(
        'Served name of the Model in whose directory the files are that options name. The step runs in its replicas.',
      ).optional(),
    })
    .meta({ 'x-kubernetes-preserve-unknown-fields': true })
    .optional()
    .describe(
      'The built-in that the step runs: its name, and its options beside it. docs/builtins.md lists them.',
    ),
}

const Fallback = oneOf(
  z.strictObject({
    ...CALLEE,
    timeout: duration(
      'Time until its last response. Default: only the deadline of the request.',
    ).optional(),
  }),
  'modelRef',
  'ensembleRef',
)

/** The fields of a step that are about its call. */
export const STEP_CALL = {
  timeout: duration(
    'Time until the last response of the step, over all attempts. The deadline of the request may be sooner.',
  ).optional(),
  retry: z
    .strictObject({
      maxRetries: whole(
        0,
        10,
        'Most attempts after the first one. With 0 nothing is tried again, not even a request that cannot have run.',
      ),
      retryOn: listSet(z.enum(RETRY_CODES), { min: 1, max: RETRY_CODES.length })
        .optional()
        .describe(
          'Codes of failures that are tried again. Default UNAVAILABLE. RESOURCE_EXHAUSTED stands for full queues too. Other codes need `mayRunTwice`.',
        ),
      backoff: duration(
        'Longest wait before the second attempt; it doubles with each one, and each wait is random. Default 10ms.',
      ).optional(),
      budgetPercent: whole(
        1,
        100,
        'Most retries of a router, in percent of its calls of the step. Default 20.',
      ).optional(),
    })
    .optional()
    .describe(
      'Number, failures and waits of further attempts. Without it, what cannot have run is tried three times in all. What may have run is tried again only with `mayRunTwice`.',
    ),
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
      'Asks a second replica of the Model too if the first one does not answer in time, and takes the first answer. Needs `mayRunTwice`; not for a Model that keeps state or is decoupled.',
    ),
  mayRunTwice: z
    .boolean()
    .optional()
    .describe(
      'The step does no harm if a request to it executes twice, so that `retry` and `hedge` may do that. Default: as the Model says.',
    ),
  onError: oneOf(
    z.strictObject({
      fallback: Fallback.optional().describe(
        'What runs in place of the step, with its inputs. It makes the same outputs.',
      ),
      default: mapOf(Constant, { max: 128, isAtomic: true })
        .optional()
        .describe(
          'Output of the step -> its value, for each output that is read. Where the Model batches, each row of a batch has it.',
        ),
    }),
    'fallback',
    'default',
  )
    .optional()
    .describe(
      'What is done after the last failure of the step, unless the request is cancelled or its time is over.',
    ),
}
