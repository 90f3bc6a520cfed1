import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { cacheFolder } from './cache-folder.mjs'
import { runQuietly } from './child.mjs'
import { SetupFailure } from './failure.mjs'
import { findGo, goEnvironment, OLDEST_GO } from './go.mjs'
import { buildOnce, goInstall } from './go-build.mjs'
import { findNpm } from './install.mjs'

const FAKE_GCS = '1.56.1'
const AZURITE = '3.37.0'
/** What azurite depends on is as it was then. */
const AZURITE_BEFORE = '2026-11-20'

/**
 * Servers that speak for the clouds: `TUTTI_FAKE_GCS`, the program fake-gcs-server, built from its Go module, and `TUTTI_AZURITE`, the
 * script of azurite's blob service, from npm; or, with `_MISSING`, why there is none: those tests then report themselves as
 * skipped. Both are kept in a cache folder outside the checkout.
 *
 * @param {{ env?: NodeJS.ProcessEnv, say?: (line: string) => void }} [o] - `say` takes what is under way.
 */
export async function findBucketServers(o = {}) {
  const found = await Promise.all([
    findOne('TUTTI_FAKE_GCS', ensureFakeGcs, o),
    findOne('TUTTI_AZURITE', ensureAzurite, o),
  ])
  return Object.assign({}, ...found)
}

async function findOne(name, ensure, { env = process.env, say = console.error }) {
  try {
    return { [name]: env[name] || (await ensure({ env, say })) }
  } catch (error) {
    if (!(error instanceof SetupFailure)) throw error
    // A machine without network tests everything else.
    return { [`${name}_MISSING`]: error.message.trim().split('\n').at(-1) }
  }
}

async function ensureFakeGcs({ env, say }) {
  const folder = folderOf(`fake-gcs-server-${FAKE_GCS}`, env)
  const program = join(folder, 'fake-gcs-server')
  if (existsSync(program)) return program
  const go = findGo(env)
  if (go.path === undefined) {
    const text = `fake-gcs-server is built with Go ${OLDEST_GO} or newer, and ${go.reason}.`
    throw new SetupFailure(text)
  }
  const what = `fake-gcs-server ${FAKE_GCS} from its Go module`
  await buildOnce(folder, { what, say }, async ({ source, out }) => {
    const module = `github.com/fsouza/fake-gcs-server@v${FAKE_GCS}`
    await goInstall(go.path, { cwd: source, env: goEnvironment(env, { GOBIN: out }), module })
  })
  return program
}

async function ensureAzurite({ env, say }) {
  const folder = folderOf(`azurite-${AZURITE}`, env)
  const script = join(folder, 'node_modules', 'azurite', 'dist', 'src', 'blob', 'main.js')
  if (existsSync(script)) return script
  const what = `azurite ${AZURITE} from npm`
  await buildOnce(folder, { what, say }, async ({ out }) => {
    const { command, args } = findNpm(env)
    const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']
    const install = ['install', '--prefix', out, `--before=${AZURITE_BEFORE}`, ...flags]
    await runQuietly('npm install', command, [...args, ...install, `azurite@${AZURITE}`], {
      cwd: out,
      env,
    })
  })
  return script
}

function folderOf(name, env) {
  return join(cacheFolder(env), `${name}-${process.platform}-${process.arch}`)
}
