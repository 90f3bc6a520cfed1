import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { cacheFolder } from './cache-folder.mjs'
import { firstLine, runQuietly } from './child.mjs'
import { SetupFailure } from './failure.mjs'
import { findGo, goEnvironment, isAtLeast, OLDEST_GO } from './go.mjs'
import { buildInto } from './go-build.mjs'
import { withLock } from './lock.mjs'

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
  const found = findInPath(env)
  if (found.path !== undefined) return found.path
  const folder = join(cacheFolder(env), `nats-server-${BUILT}-${process.platform}-${process.arch}`)
  const program = join(folder, PROGRAM)
  if (existsSync(program)) return program
  const go = findGo(env)
  if (go.path === undefined) throw missing(found.tooOld, go.reason)
  await withLock(`${folder}.lock`, async () => {
    if (existsSync(program)) return
    say(`Building nats-server ${BUILT} from its Go module (once, a minute or two) ...`)
    await buildInto(folder, async ({ source, out }) => {
      const options = { cwd: source, env: goEnvironment(env, { GOBIN: out }) }
      await runQuietly(
        'The build of nats-server',
        go.path,
        ['install', '-trimpath', MODULE],
        options,
      )
    })
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

/** The first of PATH that is new enough; else the version of one that is not. */
function findInPath(env) {
  let tooOld
  for (const folder of (env.PATH ?? '').split(delimiter)) {
    const path = join(folder, PROGRAM)
    if (folder === '' || !existsSync(path)) continue
    const version = versionOf(path)
    if (isAtLeast(version, OLDEST)) return { path }
    tooOld ??= version
  }
  return { tooOld }
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
