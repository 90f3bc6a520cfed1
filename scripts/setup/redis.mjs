import { existsSync, mkdirSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { cacheFolder } from './cache-folder.mjs'
import { findInPath } from './child.mjs'
import { APT_GET, installDebianPackages } from './debian-packages.mjs'
import { SetupFailure } from './failure.mjs'

/** Debian's name of the server's own program, in the package that starts no service. It serves where it is called redis-server. */
const CHECKER = 'redis-check-rdb'

/**
 * `TUTTI_REDIS_SERVER`, the redis-server or valkey-server that tests use, from PATH or Debian's redis-tools, which is installed if it
 * is not there; or `TUTTI_REDIS_SERVER_MISSING`, why there is none: those tests then report themselves as skipped.
 */
export async function findRedisServer({ env = process.env, say = console.error } = {}) {
  if (env.TUTTI_REDIS_SERVER) return { TUTTI_REDIS_SERVER: env.TUTTI_REDIS_SERVER }
  const [found] = ['redis-server', 'valkey-server'].flatMap((name) => findInPath(name, env))
  if (found !== undefined) return { TUTTI_REDIS_SERVER: found }
  try {
    const [checker] = findInPath(CHECKER, env)
    const program = checker ?? (await installChecker({ env, say }))
    return { TUTTI_REDIS_SERVER: linkServer(program, env) }
  } catch (error) {
    if (!(error instanceof SetupFailure)) throw error
    // A machine without network tests everything else.
    const reason = error.message.trim().split('\n').at(-1)
    return { TUTTI_REDIS_SERVER_MISSING: `there is no redis-server: ${reason}` }
  }
}

/** @throws SetupFailure */
async function installChecker({ env, say }) {
  if (!existsSync(APT_GET)) throw new SetupFailure('it is not here, and there is no apt-get')
  if (process.getuid() !== 0) throw new SetupFailure('try: sudo apt-get install redis-tools')
  await installDebianPackages({ 'redis-tools': CHECKER }, { env, say })
  const [checker] = findInPath(CHECKER, env)
  if (checker === undefined) throw new SetupFailure(`redis-tools has no ${CHECKER}`)
  return checker
}

function linkServer(program, env) {
  const folder = join(cacheFolder(env), 'redis')
  const server = join(folder, 'redis-server')
  mkdirSync(folder, { recursive: true })
  rmSync(server, { force: true })
  symlinkSync(program, server)
  return server
}
