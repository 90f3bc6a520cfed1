import { existsSync } from 'node:fs'
import { findInPath } from './child.mjs'
import { APT_GET, installDebianPackages } from './debian-packages.mjs'
import { SetupFailure } from './failure.mjs'

const NAMES = ['chromium', 'chromium-browser', 'google-chrome']
const PACKAGES = {
  chromium: 'chromium',
  'fonts-dejavu-core': '/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf',
}

/**
 * `TUTTI_CHROMIUM`, the browser that tests of the console drive, from PATH or Debian's package, which is installed if it is not
 * there; or `TUTTI_CHROMIUM_MISSING`, why there is none: those tests then report themselves as skipped.
 */
export async function findChromium({ env = process.env, say = console.error } = {}) {
  if (env.TUTTI_CHROMIUM) return { TUTTI_CHROMIUM: env.TUTTI_CHROMIUM }
  const find = () => NAMES.flatMap((name) => findInPath(name, env))[0]
  const found = find()
  if (found !== undefined) return { TUTTI_CHROMIUM: found }
  try {
    if (!existsSync(APT_GET)) throw new SetupFailure('it is not here, and there is no apt-get')
    if (process.getuid() !== 0) throw new SetupFailure('try: sudo apt-get install chromium')
    await installDebianPackages(PACKAGES, { env, say })
    const installed = find()
    if (installed === undefined) throw new SetupFailure('chromium has no program of that name')
    return { TUTTI_CHROMIUM: installed }
  } catch (error) {
    if (!(error instanceof SetupFailure)) throw error
    // A machine without network tests everything else.
    const reason = error.message.trim().split('\n').at(-1)
    return { TUTTI_CHROMIUM_MISSING: `there is no chromium: ${reason}` }
  }
}
