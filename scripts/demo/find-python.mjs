import { firstLine } from '../setup/child.mjs'
import { SetupFailure } from '../setup/failure.mjs'
import { ensurePython } from '../setup/python.mjs'

const REQUIREMENTS = 'scripts/demo-requirements.txt'
const PROBE =
  'import sys, numpy, PIL; v = PIL.__version__.split(".")[:2]; ' +
  'sys.exit(0 if sys.version_info >= (3, 9) and tuple(map(int, v)) >= (9, 1) else 1)'

/**
 * A Python for the OCR system: the python3 of PATH if it has NumPy and Pillow, else one with them in a cache folder.
 *
 * @returns {Promise<{ python: string } | { missing: string }>} the interpreter, or why there is none.
 */
export async function findPython() {
  if (firstLine('python3', ['-c', PROBE]) !== undefined) return { python: 'python3' }
  try {
    return { python: await ensurePython(REQUIREMENTS) }
  } catch (error) {
    if (!(error instanceof SetupFailure)) throw error
    // Before the last lines stands what pip wrote.
    const lines = error.message.split('\n').filter((line) => line.trim() !== '')
    return { missing: lines.slice(-2).join(' ') }
  }
}
