import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { runChild, runQuietly } from './child.mjs'
import { SetupFailure } from './failure.mjs'
import { withLock } from './lock.mjs'

/**
 * Builds main packages of the module in `cwd`. All builds have the same flags, so that they share what Go has compiled.
 *
 * @param {{ cwd: string, env: NodeJS.ProcessEnv, what: string, out: string, packages: readonly string[],
 *   values?: Record<string, string> }} o - `out` is a file, or
 *   with several packages a folder; `values` are those of variables, by package and name.
 */
export async function goBuild(go, { cwd, env, what, out, packages, values = {} }) {
  const set = Object.entries(values).map(([name, value]) => `-X ${name}=${value}`)
  const flags = ['-mod=readonly', '-buildvcs=false', '-trimpath', '-ldflags']
  const args = ['build', ...flags, ['-s', '-w', ...set].join(' '), '-o', out, ...packages]
  await runQuietly(`The build of ${what}`, go, args, { cwd, env })
}

/** Builds `package@version` of a module that replaces nothing into the folder GOBIN of `env`. */
export async function goInstall(go, { cwd, env, module }) {
  const args = ['install', '-trimpath', '-ldflags', '-s -w', module]
  await runQuietly(`The build of ${module}`, go, args, { cwd, env })
}

/** The folder with the files of `module@version`. */
export async function moduleFolder(go, { cwd, env, module }) {
  const args = ['mod', 'download', '-json', module]
  const output = Promise.withResolvers()
  const options = { cwd, env, stdio: ['ignore', 'pipe', 'inherit'] }
  const code = await runChild(go, args, options, ({ stdout }) => {
    output.resolve(text(stdout))
  })
  if (code !== 0) throw new SetupFailure(`${go} ${args.join(' ')} failed with code ${code}.`)
  return JSON.parse(await output.promise).Dir
}

/**
 * Builds into a folder as `buildInto`, unless it is there, one run after the other.
 *
 * @param {{ what: string, say: (line: string) => void }} o - `what` is built; `say` takes what is under way.
 */
export async function buildOnce(folder, { what, say }, build) {
  await withLock(
    `${folder}.lock`,
    async () => {
      if (existsSync(folder)) return
      say(`Building ${what} (once, some minutes) ...`)
      await buildInto(folder, build)
    },
    () => say(`Waiting for another run to build ${what} ...`),
  )
}

/**
 * Builds into a folder, which is there as a whole or not at all.
 *
 * @param {(o: { source: string, out: string }) => Promise<void>} build - has a folder for its sources, not in the checkout, where a
 *   go.work or another build could be, and one for what it makes.
 */
async function buildInto(folder, build) {
  mkdirSync(dirname(folder), { recursive: true })
  const unfinished = mkdtempSync(`${folder}-build-`)
  const [source, out] = ['source', 'out'].map((name) => join(unfinished, name))
  try {
    for (const path of [source, out]) mkdirSync(path)
    await build({ source, out })
    rmSync(folder, { recursive: true, force: true })
    renameSync(out, folder)
  } finally {
    rmSync(unfinished, { recursive: true, force: true })
  }
}
