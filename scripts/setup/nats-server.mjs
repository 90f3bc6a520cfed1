import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { cacheFolder } from './cache-folder.mjs'
import { findInPath, firstLine, runQuietly } from './child.mjs'
import { SetupFailure } from './failure.mjs'
import { findGo, goEnvironment, isAtLeast, OLDEST_GO } from './go.mjs'
import { buildOnce } from './go-build.mjs'

const OLDEST = [2, 15]
const BUILT = '2.15.2'
const MODULE = `github.com/nats-io/nats-server/v2@v${BUILT}`
const PROGRAM = process.platform === 'win32' ? 'nats-server.exe' : 'nats-server'

/**
 * A nats-server: the one that TUTTI_NATS_SERVER names, else one of PATH that is new enough, else one built from its Go module
 * into a cache folder outside the checkout.
 *
 * @param {{ env?: NodeJS.ProcessEnv, say?: (line: string) => void }} [o] - `say` takes what is under way.
 * @returns {Promise<string>} its path.
 * @throws SetupFailure if TUTTI_NATS_SERVER names none, or one must be built and there is no Go that can.
 */
export async function ensureNatsServer({ env = process.env, say = console.error } = {}) {
  const named = env.TUTTI_NATS_SERVER
  if (named) return checkNamed(named)
  const found = findInPath(PROGRAM, env).map((path) => ({ path, version: versionOf(path) }))
  const enough = found.find(({ version }) => isAtLeast(version, OLDEST))
  if (enough !== undefined) return enough.path
  const folder = join(cacheFolder(env), `nats-server-${BUILT}-${process.platform}-${process.arch}`)
  const program = join(folder, PROGRAM)
  if (existsSync(program)) return program
  const go = findGo(env)
  if (go.path === undefined) throw missing(found[0]?.version, go.reason)
  const what = `nats-server ${BUILT} from its Go module`
  await buildOnce(folder, { what, say }, async ({ source, out }) => {
    const options = { cwd: source, env: goEnvironment(env, { GOBIN: out }) }
    const args = ['install', '-trimpath', MODULE]
    await runQuietly('The build of nats-server', go.path, args, options)
  })
  return program
}

function checkNamed(path) {
  const version = versionOf(path)
  if (isAtLeast(version, OLDEST)) return path
  throw new SetupFailure(
    `TUTTI_NATS_SERVER is ${path}, which is ${version ?? 'no nats-server'}; ` +
      `want nats-server ${OLDEST.join('.')} or newer.`,
  )
}

function versionOf(path) {
  return /v(\d+\.\d+\.\S+)/.exec(firstLine(path, ['--version']) ?? '')?.[1]
}

function missing(tooOld, go) {
  const server = tooOld === undefined ? 'there is none in PATH' : `the one in PATH is ${tooOld}`
  return new SetupFailure(
    `Tutti needs nats-server ${OLDEST.join('.')} or newer; ${server}.\n` +
      `It is built from its Go module if there is Go ${OLDEST_GO} or newer; ${go}.\n` +
      'Install Go from https://go.dev/dl, or nats-server from https://github.com/nats-io/nats-server/releases,\n' +
      'or set TUTTI_NATS_SERVER to the path of a nats-server.',
  )
}
