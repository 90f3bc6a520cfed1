/**
 * Most bytes of the outputs of one request. Few bytes of boxes or indices can ask for gigabytes, for which the system would end the process.
 * No flag: what is between two models of an ensemble is far below.
 */
export const MAX_OUTPUT_BYTES = 2 ** 30
