// Surfaces with faults, for the test of the machinery.

/** Coverage leads to the last condition: to pass each of them alone is a new block. */
function passConditions(input) {
  if (input[1] >= 0x20) return
  if (input[3] < 0x80) return
  if (input[5] >= 0x20) return
  if (input[7] < 0x80) return
  throw new TypeError('four conditions')
}

function hang(input) {
  while (input.length > 8);
}

/** In small pieces: V8 ends a thread between two of them, and the whole process if one alone is more than it has left. */
function fill(input) {
  const held = []
  while (input.length > 8) held.push(Array.from({ length: 1000 }).fill(held.length))
}

const EXAMPLES = [Buffer.from('cabcdefg')]
const surfaceOf = (run) => ({ formats: ['bytes'], run, examples: EXAMPLES })

export const SURFACES = {
  deep: surfaceOf(passConditions),
  hang: surfaceOf(hang),
  memory: surfaceOf(fill),
}
