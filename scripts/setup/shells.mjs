import { existsSync } from 'node:fs'
import { findInPath } from './child.mjs'
import { APT_GET, installDebianPackages } from './debian-packages.mjs'
import { SetupFailure } from './failure.mjs'

const SHELLS = ['zsh', 'fish']

/**
 * For tests of completion: `TUTTI_ZSH` and `TUTTI_FISH`, Debian's, which are installed if they are not there; or `TUTTI_ZSH_MISSING` and
 * `TUTTI_FISH_MISSING`, why there is none: their tests then report themselves as skipped. bash is everywhere.
 */
export async function findShells({ env = process.env, say = console.error } = {}) {
  const reason = await install({ env, say })
  const found = SHELLS.map((name) => {
    const [program] = findInPath(name, env)
    const variable = `TUTTI_${name.toUpperCase()}`
    return program === undefined
      ? { [`${variable}_MISSING`]: `there is no ${name}: ${reason}` }
      : { [variable]: program }
  })
  return Object.assign({}, ...found)
}

/** @returns why what is missing stays so. */
async function install({ env, say }) {
  const lacking = SHELLS.filter((name) => findInPath(name, env).length === 0)
  if (lacking.length === 0) return undefined
  if (!existsSync(APT_GET)) return 'there is no apt-get to install it'
  if (process.getuid() !== 0) return `install it with: sudo apt-get install ${lacking.join(' ')}`
  try {
    await installDebianPackages(Object.fromEntries(SHELLS.map((name) => [name, name])), {
      env,
      say,
    })
  } catch (error) {
    if (!(error instanceof SetupFailure)) throw error
    // A machine without network tests everything else.
    return error.message.trim().split('\n').at(-1)
  }
  return 'its package has no such program'
}
