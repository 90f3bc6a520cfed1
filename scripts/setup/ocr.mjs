import { createHash } from 'node:crypto'
import { existsSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { cacheFolder } from './cache-folder.mjs'
import { runQuietly } from './child.mjs'
import { SetupFailure } from './failure.mjs'
import { withLock } from './lock.mjs'
import { ensurePython } from './python.mjs'

/**
 * Finds what the tests of the example read-text need to know: `TUTTI_OCR_NETWORKS`, a folder with its networks, and `TUTTI_OCR_PYTHON`, an
 * interpreter with the program that it is compared with; or `TUTTI_OCR_MISSING`, why they are not there.
 *
 * @param {string} root - of the checkout.
 */
export async function findOcr(root) {
  try {
    const python = await ensurePython(join(root, 'scripts', 'ocr-requirements.txt'), ['--no-deps'])
    const example = join(root, 'examples', 'read-text')
    return { TUTTI_OCR_PYTHON: python, TUTTI_OCR_NETWORKS: await ensureNetworks(python, example) }
  } catch (error) {
    if (!(error instanceof SetupFailure)) throw error
    // A machine without network tests everything else.
    return { TUTTI_OCR_MISSING: error.message.trim().split('\n').at(-1) }
  }
}

/** The networks, in a cache folder outside of the checkout. */
async function ensureNetworks(python, example) {
  const script = join(example, 'get_networks.py')
  const key = createHash('sha256')
    .update(readFileSync(script))
    .update(readFileSync(join(example, 'networks.txt')))
    .digest('hex')
    .slice(0, 16)
  const folder = join(cacheFolder(), `ocr-networks-${key}`)
  if (existsSync(folder)) return folder
  await withLock(`${folder}.lock`, async () => {
    if (existsSync(folder)) return
    const part = `${folder}.part`
    rmSync(part, { recursive: true, force: true })
    await runQuietly('get_networks.py', python, [script, part])
    renameSync(part, folder)
  })
  return folder
}
