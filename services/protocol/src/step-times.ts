/** Header of a request whose answer shall say what its steps took; any value does. A page's answer has the times in a header of this name. */
export const STEPS_HEADER = 'tutti-steps'

/** Parameter of an answer, the final one of a stream, that says it: the recorded steps as JSON. */
export const STEPS_PARAMETER = 'tutti_steps'
