import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { cacheFolder } from './cache-folder.mjs'
import { runQuietly } from './child.mjs'
import { orMissing } from './failure.mjs'
import { buildOnce } from './go-build.mjs'
import { ensureGoProgram } from './go-program.mjs'
import { findNpm } from './install.mjs'

const FAKE_GCS = {
  name: 'fake-gcs-server',
  package: 'github.com/fsouza/fake-gcs-server',
  version: '1.56.1',
}
const AZURITE = '3.37.0'
/** The day before which the packages that azurite depends on were published. */
const AZURITE_BEFORE = '2026-11-20'

/**
 * Servers that speak for the clouds: `TUTTI_FAKE_GCS`, the program fake-gcs-server, built from its Go module, and `TUTTI_AZURITE`, the
 * script of azurite's blob service, from npm; or, with `_MISSING`, why there is none: those tests then report themselves as
 * skipped. Both are kept in a cache folder outside the checkout.
 *
 * @param {{ env?: NodeJS.ProcessEnv, say?: (line: string) => void }} [o] - `say` takes what is under way.
 */
export async function findBucketServers({ env = process.env, say = console.error } = {}) {
  const found = await Promise.all([
    orMissing(
      'TUTTI_FAKE_GCS',
      () => env.TUTTI_FAKE_GCS || ensureGoProgram(FAKE_GCS, { env, say }),
    ),
    orMissing('TUTTI_AZURITE', () => env.TUTTI_AZURITE || ensureAzurite({ env, say })),
  ])
  return Object.assign({}, ...found)
}

async function ensureAzurite({ env, say }) {
  const folder = join(cacheFolder(env), `azurite-${AZURITE}-${process.platform}-${process.arch}`)
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
