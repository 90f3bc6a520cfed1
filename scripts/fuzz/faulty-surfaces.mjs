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

function fill(input) {
  const held = []
  while (input.length > 8) held.push([...held.slice(-100_000), held.length])
}

const EXAMPLES = [Buffer.from('cabcdefg')]
const surfaceOf = (run) => ({ formats: ['bytes'], run, examples: EXAMPLES })

export const SURFACES = {
  deep: surfaceOf(passConditions),
  hang: surfaceOf(hang),
  memory: surfaceOf(fill),
}
