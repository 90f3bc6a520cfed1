import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { cacheFolder } from './cache-folder.mjs'
import { SetupFailure } from './failure.mjs'
import { findGo, goEnvironment, OLDEST_GO } from './go.mjs'
import { buildOnce, goInstall } from './go-build.mjs'

/**
 * A program, built from its Go module into the cache folder unless it is there. Go checks the module against the public database
 * of checksums.
 *
 * @param {{ name: string, package: string, version: string }} program - `package` of the program, without its version.
 * @param {{ env: NodeJS.ProcessEnv, say: (line: string) => void }} o - `say` takes what is under way.
 * @returns {Promise<string>} its path.
 * @throws SetupFailure if it cannot be built.
 */
export async function ensureGoProgram({ name, package: path, version }, { env, say }) {
  const folder = join(cacheFolder(env), `${name}-${version}-${process.platform}-${process.arch}`)
  const program = join(folder, name)
  if (existsSync(program)) return program
  const go = findGo(env)
  if (go.path === undefined) {
    throw new SetupFailure(`${name} is built with Go ${OLDEST_GO} or newer, and ${go.reason}.`)
  }
  await buildOnce(folder, { what: `${name} ${version} from its Go module`, say }, (o) =>
    goInstall(go.path, {
      cwd: o.source,
      env: goEnvironment(env, { GOBIN: o.out }),
      module: `${path}@v${version}`,
    }),
  )
  return program
}
