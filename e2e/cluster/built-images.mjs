import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { isUpToDate } from '../../scripts/images/build.mjs'
import { DEFAULT_IMAGES } from '../../scripts/images/catalogue.mjs'
import { findEngine } from '../../scripts/images/engine.mjs'
import { inputsDigest } from '../../scripts/images/inputs.mjs'
import { parseOptions } from '../../scripts/images/options.mjs'
import { runChild } from '../../scripts/setup/child.mjs'
import { SetupFailure } from '../../scripts/setup/failure.mjs'
import { installImageBuilder } from './machine.mjs'

const root = resolve(import.meta.dirname, '..', '..')

/**
 * Builds those images of Tutti whose archives are not there, or were built from other files: as `npm run images` does, with docker
 * where a daemon answers, else with buildah, which is installed, on bases made from packages.
 *
 * @param {{ env?: NodeJS.ProcessEnv, say?: (line: string) => void }} [o] - `say` takes what is under way.
 * @throws SetupFailure if one cannot be built.
 */
export async function ensureImages({ env = process.env, say = console.error } = {}) {
  const names = staleImages(env)
  if (names.length === 0) return
  const flags = await engineFlags({ env, say })
  say(`Building the images ${names.join(', ')} ...`)
  const script = join(root, 'scripts', 'images.mjs')
  const only = names.map((name) => `--only=${name}`)
  const code = await runChild(process.execPath, [script, ...flags, ...only], { env })
  if (code !== 0) throw new SetupFailure('The images were not built; the error is above.')
}

/** Which of the images are not built from the files of this checkout. */
export function staleImages(env) {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const options = parseOptions([], { version, env })
  const inputs = inputsDigest(root)
  return DEFAULT_IMAGES.filter((name) => !isUpToDate(name, inputs, options))
}

async function engineFlags(o) {
  try {
    return [`--engine=${findEngine({ named: 'docker' })}`]
  } catch (error) {
    if (!(error instanceof SetupFailure)) throw error
    await installImageBuilder(o)
    return ['--engine=buildah', '--make-base']
  }
}
