/** All that is counted around the executions of a step. */
export const STEP_COUNTS = [
  'skipped',
  'timedOut',
  'retried',
  'retryRefused',
  'hedged',
  'hedgeWon',
  'fellBack',
  'defaulted',
  'items',
  'itemCalls',
  'failedItems',
  'iterations',
] as const
/** A thing that is done around the executions of a step of an ensemble. */
export type StepCount = (typeof STEP_COUNTS)[number]
