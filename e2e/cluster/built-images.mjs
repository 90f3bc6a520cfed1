import { readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isUpToDate } from '../../scripts/images/build.mjs'
import { USUAL_IMAGES } from '../../scripts/images/catalogue.mjs'
import { findEngine } from '../../scripts/images/engine.mjs'
import { inputsDigest } from '../../scripts/images/inputs.mjs'
import { parseOptions } from '../../scripts/images/options.mjs'
import { runChild } from '../../scripts/setup/child.mjs'
import { SetupFailure } from '../../scripts/setup/failure.mjs'
import { installImageBuilder } from './machine.mjs'

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..', '..')

/**
 * Builds those images of Tutti whose archives are not there, or were built from other files: as `npm run images` does, with docker
 * on its public base where a daemon answers, else with buildah, which is installed, on a base made from packages.
 *
 * @param {{ env?: NodeJS.ProcessEnv, say?: (line: string) => void }} [o] - `say` takes what is under way.
 * @throws SetupFailure if one cannot be built.
 */
export async function ensureImages({ env = process.env, say = console.error } = {}) {
  const names = staleImages(env)
  if (names.length === 0) return
  const engine = await ensureEngine({ env, say })
  say(`Building the images ${names.join(', ')} with ${engine} ...`)
  const args = [`--engine=${engine}`, ...(engine === 'buildah' ? ['--make-base'] : [])]
  const script = join(root, 'scripts', 'images.mjs')
  const only = names.map((name) => `--only=${name}`)
  const code = await runChild(process.execPath, [script, ...args, ...only], { env })
  if (code !== 0) throw new SetupFailure('The images were not built; what failed is said above.')
}

/** Which of the usual images are not built from the files of this checkout. */
export function staleImages(env) {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const options = parseOptions([], { version, env })
  const inputs = inputsDigest(root)
  return USUAL_IMAGES.filter((name) => !isUpToDate(name, inputs, options))
}

async function ensureEngine(o) {
  if (isDockerThere()) return 'docker'
  await installImageBuilder(o)
  return findEngine({ named: 'buildah' })
}

function isDockerThere() {
  try {
    return findEngine({ named: 'docker' }) === 'docker'
  } catch (error) {
    if (error instanceof SetupFailure) return false
    throw error
  }
}
