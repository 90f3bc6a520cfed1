import { ServeError } from '../../services/errors/dist/index.js'

/**
 * Gives an input to a surface.
 *
 * @param {import('./surfaces.mjs').Surface} surface
 * @param {Buffer} input
 * @returns {Promise<'understood' | 'refused'>}
 * @throws whatever is wrong with us.
 */
export async function runInput({ run, refusal = ServeError }, input) {
  try {
    await run(input)
    return 'understood'
  } catch (error) {
    if (error instanceof refusal) return 'refused'
    throw error
  }
}
