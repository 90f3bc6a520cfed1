import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { cacheFolder } from './cache-folder.mjs'
import { findInPath, runQuietly } from './child.mjs'
import { SetupFailure } from './failure.mjs'
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

/**
 * Unpacks one of Debian's packages without installing it, so that it starts no service.
 *
 * @param {{ source: string, out: string, env: NodeJS.ProcessEnv }} o - `source` is a folder for the package, `out` for its files.
 * @throws SetupFailure if it cannot be had.
 */
export async function unpackDebianPackage(name, { source, out, env }) {
  if (!existsSync(APT_GET)) throw new SetupFailure('it is not here, and there is no apt-get')
  const options = { cwd: source, env }
  await withLock(join(cacheFolder(env), 'apt-get.lock'), async () => {
    // Others may read the list of packages; only root gets it.
    if (process.getuid() === 0) {
      await runQuietly('apt-get update', APT_GET, ['update', '-q'], options)
    }
    await runQuietly('apt-get download', APT_GET, ['download', '-q', name], options)
  })
  const file = readdirSync(source).find((entry) => entry.endsWith('.deb'))
  if (file === undefined) throw new SetupFailure('apt-get has downloaded no package')
  await runQuietly('dpkg-deb', '/usr/bin/dpkg-deb', ['-x', join(source, file), out], options)
}
