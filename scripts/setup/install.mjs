import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { firstLine, runQuietly } from './child.mjs'
import { SetupFailure } from './failure.mjs'
import { toolEnvironment } from './node-24.mjs'

/**
 * Installs what package-lock.json names, unless exactly that is installed already.
 *
 * @param {(line: string) => void} [say] - takes what is under way.
 */
export async function ensureInstalled(root, say = console.error) {
  const stamp = join(root, 'node_modules', '.tutti-installed')
  const key = installKey(root)
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === key) return
  const npm = findNpm()
  const place = join(root, 'node_modules')
  say(`Installing npm packages into ${place} (once, some minutes on a slow line) ...`)
  await runQuietly(
    'npm ci',
    npm.command,
    [...npm.args, 'ci', '--no-progress', '--loglevel=error'],
    { cwd: root },
  )
  // A project without dependencies gets no such folder from npm.
  mkdirSync(join(root, 'node_modules'), { recursive: true })
  writeFileSync(stamp, key)
}

/** Compiles what has changed; the compiler itself knows what that is. */
export async function ensureBuilt(root, node) {
  if (!existsSync(join(root, 'services', 'cli', 'dist'))) console.error('Building ...')
  const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc')
  const options = { cwd: root, env: toolEnvironment(root) }
  await runQuietly('The build (tsc -b)', node, [tsc, '-b'], options)
  await runQuietly('The page of the console', node, ['scripts/bundle-console.mjs'], options)
}

/** Changes whenever what `npm ci` would install does. */
function installKey(root) {
  const lockfile = readFileSync(join(root, 'package-lock.json'))
  const digest = createHash('sha256').update(lockfile).digest('hex')
  return `${digest} ${process.platform} ${process.arch}\n`
}

/**
 * How npm is started.
 *
 * @throws SetupFailure if there is none.
 */
export function findNpm(env = process.env) {
  // Set when npm itself runs us; its own file is then sure to be the right one.
  const script = env.npm_execpath
  if (script !== undefined && /npm-cli\.[cm]?js$/.test(script)) {
    return { command: process.execPath, args: [script] }
  }
  if (firstLine('npm', ['--version'], env) !== undefined) return { command: 'npm', args: [] }
  throw new SetupFailure(
    'Tutti needs npm, which comes with Node from https://nodejs.org; none was found.',
  )
}
