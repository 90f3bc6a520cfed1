import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { cacheFolder } from './cache-folder.mjs'
import { findInPath, runQuietly } from './child.mjs'
import { withLock } from './lock.mjs'

export const APT_GET = '/usr/bin/apt-get'

/**
 * Those of Debian's packages that are not there.
 *
 * @param {Readonly<Record<string, string>>} packages - name -> the program or file by which it is known that one is there.
 */
export function lackingPackages(env, packages) {
  const isThere = (name) =>
    name.startsWith('/') ? existsSync(name) : findInPath(name, env).length > 0
  return Object.keys(packages).filter((name) => !isThere(packages[name]))
}

/**
 * Installs Debian's packages that are not there; it takes root.
 *
 * @throws SetupFailure if one cannot be installed.
 */
export async function installDebianPackages(packages, { env, say }) {
  await withLock(join(cacheFolder(env), 'apt-get.lock'), async () => {
    const lacking = lackingPackages(env, packages)
    if (lacking.length === 0) return
    say(`Installing ${lacking.join(', ')} ...`)
    const options = { env: { ...env, DEBIAN_FRONTEND: 'noninteractive' } }
    await runQuietly('apt-get update', APT_GET, ['update', '-q'], options)
    const args = ['install', '-q', '-y', '--no-install-recommends', ...lacking]
    await runQuietly(`apt-get install ${lacking.join(' ')}`, APT_GET, args, options)
  })
}
