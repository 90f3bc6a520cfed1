/**
 * Request header, with any value, that asks for the times of the request's steps. Pages get them in a response header of this
 * name.
 */
export const STEPS_HEADER = 'tutti-steps'

/** Response parameter with the times of the recorded steps as JSON. In a stream the final response has it. */
export const STEPS_PARAMETER = 'tutti_steps'
