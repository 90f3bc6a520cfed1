import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { cacheFolder } from './cache-folder.mjs'
import { findInPath } from './child.mjs'
import { unpackDebianPackage } from './debian-packages.mjs'
import { SetupFailure } from './failure.mjs'
import { buildOnce } from './go-build.mjs'

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
    await buildOnce(folder, { what, say }, (parts) =>
      unpackDebianPackage('prometheus', { ...parts, env }),
    )
    return { TUTTI_PROMETHEUS: join(folder, 'usr', 'bin') }
  } catch (error) {
    if (!(error instanceof SetupFailure)) throw error
    // A machine without network tests everything else.
    const reason = error.message.trim().split('\n').at(-1)
    return { TUTTI_PROMETHEUS_MISSING: `there is no Prometheus: ${reason}` }
  }
}
