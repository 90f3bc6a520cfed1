/**
 * Request header, with any value, that asks for the times of the request's steps. Pages get them in a response header of this
 * name.
 */
export const STEPS_HEADER = 'tutti-steps'

/** Value of STEPS_HEADER with which a request that fails has an answer too, with the steps, the error and no outputs. */
export const STEPS_OF_FAILURES = 'failures'

/** Response parameter with the times of the recorded steps as JSON. In a stream the final response has it. */
export const STEPS_PARAMETER = 'tutti_steps'
