import { createHash } from 'node:crypto'
import { cpSync, existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { cacheFolder } from './cache-folder.mjs'
import { orMissing, SetupFailure } from './failure.mjs'
import { findGo, goEnvironment, OLDEST_GO } from './go.mjs'
import { buildOnce, goBuild } from './go-build.mjs'

const SOURCES = join(import.meta.dirname, 'gitops')

/**
 * `TUTTI_GITOPS`, a program that says how Argo CD, Flux and kstatus see objects, built from `gitops/` with the libraries of these; or
 * `TUTTI_GITOPS_MISSING`, why there is none.
 */
export function findGitops({ env = process.env, say = console.error } = {}) {
  return orMissing('TUTTI_GITOPS', () => ensureGitops(env, say))
}

async function ensureGitops(env, say) {
  const folder = join(cacheFolder(env), `gitops-${digestOfInputs()}`)
  const program = join(folder, 'gitops')
  if (existsSync(program)) return program
  const go = findGo(env)
  if (go.path === undefined) {
    throw new SetupFailure(`gitops is built with Go ${OLDEST_GO} or newer, and ${go.reason}.`)
  }
  const what = 'the health checks of Argo CD and Flux from their Go modules'
  await buildOnce(folder, { what, say }, async ({ source, out }) => {
    cpSync(SOURCES, source, { recursive: true })
    const parts = { cwd: source, env: goEnvironment(env), what, packages: ['.'] }
    await goBuild(go.path, { ...parts, out: join(out, 'gitops') })
  })
  return program
}

/** Changes with all that goes into the build. */
function digestOfInputs() {
  const hash = createHash('sha256')
  for (const file of readdirSync(SOURCES).toSorted()) hash.update(readFileSync(join(SOURCES, file)))
  return `${hash.digest('hex').slice(0, 16)}-${process.platform}-${process.arch}`
}
