import { existsSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { cacheFolder } from './cache-folder.mjs'
import { findInPath, runQuietly } from './child.mjs'
import { APT_GET } from './debian-packages.mjs'
import { SetupFailure } from './failure.mjs'
import { buildOnce } from './go-build.mjs'
import { withLock } from './lock.mjs'

/**
 * `TUTTI_PROMETHEUS`, the folder of the programs prometheus and promtool, from PATH or out of Debian's package, which is unpacked into
 * a cache folder and not installed: it would start a service. Or `TUTTI_PROMETHEUS_MISSING`, why there is none: those tests then
 * report themselves as skipped.
 */
export async function findPrometheus({ env = process.env, say = console.error } = {}) {
  if (env.TUTTI_PROMETHEUS) return { TUTTI_PROMETHEUS: env.TUTTI_PROMETHEUS }
  const [found] = findInPath('prometheus', env)
  if (found !== undefined && existsSync(join(dirname(found), 'promtool'))) {
    return { TUTTI_PROMETHEUS: dirname(found) }
  }
  try {
    const folder = join(cacheFolder(env), `prometheus-debian-${process.arch}`)
    const what = "Prometheus from Debian's package"
    if (!existsSync(APT_GET)) throw new SetupFailure('it is not here, and there is no apt-get')
    await buildOnce(folder, { what, say }, (parts) => unpack({ ...parts, env }))
    return { TUTTI_PROMETHEUS: join(folder, 'usr', 'bin') }
  } catch (error) {
    if (!(error instanceof SetupFailure)) throw error
    // A machine without network tests everything else.
    const reason = error.message.trim().split('\n').at(-1)
    return { TUTTI_PROMETHEUS_MISSING: `there is no Prometheus: ${reason}` }
  }
}

/** @throws SetupFailure */
async function unpack({ source, out, env }) {
  const options = { cwd: source, env }
  await withLock(join(cacheFolder(env), 'apt-get.lock'), async () => {
    // Others may read the list of packages; only root gets it.
    if (process.getuid() === 0) {
      await runQuietly('apt-get update', APT_GET, ['update', '-q'], options)
    }
    await runQuietly('apt-get download', APT_GET, ['download', '-q', 'prometheus'], options)
  })
  const name = readdirSync(source).find((file) => file.endsWith('.deb'))
  if (name === undefined) throw new SetupFailure('apt-get has downloaded no package')
  await runQuietly('dpkg-deb', '/usr/bin/dpkg-deb', ['-x', join(source, name), out], options)
}
