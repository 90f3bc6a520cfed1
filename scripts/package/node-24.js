// Runs on any Node since 20: finds a newer one for Tutti in the user's cache, or lets npm put it there.
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { basename, isAbsolute, join } from 'node:path'
import process from 'node:process'
import { promisify } from 'node:util'

const WANTED_MAJOR = 24
const STOPS = ['SIGINT', 'SIGTERM', 'SIGHUP']
const run = promisify(execFile)

/** Whether Tutti runs on a version of Node, such as '24.1.0'. */
export function isWanted(version) {
  return Number.parseInt(version, 10) >= WANTED_MAJOR
}

/**
 * @param {{ everyMs?: number }} [o] - how often it says that npm still installs.
 * @returns {Promise<string>} the path of a Node that runs here: from the cache, where the first call has npm install it.
 * @throws Error if npm has none for this machine, or cannot be reached.
 */
export async function ensureNode(o = {}) {
  const { config } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
  const { platform, arch, versions } = process
  const name = `node-${platform}-${arch}`
  const folder = join(cacheFolder(), `${name}-${config.node}`)
  const node = join(folder, 'node_modules', name, 'bin', 'node')
  if (existsSync(node)) return node
  process.stderr.write(
    `tutti: got Node ${versions.node}; installing Node ${config.node} into ${folder} (once) ...\n`,
  )
  const startedAt = performance.now()
  const seconds = () => Math.round((performance.now() - startedAt) / 1000)
  const stopShowing = showElapsed(() => `tutti: installing Node ${config.node}: ${seconds()} s`, o)
  try {
    await install(`${name}@${config.node}`, folder, join('node_modules', name, 'bin', 'node'))
  } catch (error) {
    const [reason] = (error.stderr || error.message).trim().split('\n')
    throw new Error(
      `got Node ${versions.node}, want ${WANTED_MAJOR} or newer, and ${name} could not be installed (${reason}); ` +
        'install Node from https://nodejs.org',
      { cause: error },
    )
  } finally {
    stopShowing()
  }
  process.stderr.write(`tutti: installed Node ${config.node} in ${seconds()} s\n`)
  return node
}

/** A time that moves on a terminal, elsewhere a line every 10 s. @returns ends it. */
function showElapsed(render, { everyMs }) {
  const { stderr, env } = process
  const isDrawn = stderr.isTTY && (env.TERM ?? 'dumb') !== 'dumb'
  const clear = isDrawn ? '\r\u001b[K' : ''
  const show = () => stderr.write(`${clear}${render()}${isDrawn ? '' : '\n'}`)
  const timer = setInterval(show, everyMs ?? (isDrawn ? 1000 : 10_000))
  return () => {
    clearInterval(timer)
    stderr.write(clear)
  }
}

/** Others may install it at the same time, so it is made aside, and is there whole or not at all. */
async function install(what, folder, program) {
  mkdirSync(join(folder, '..'), { recursive: true })
  const made = mkdtempSync(`${folder}-`)
  const broken = `${made}.broken`
  // Ctrl-C ends npm, and nothing that is half made stays.
  const stop = new AbortController()
  const onStop = () => stop.abort()
  for (const signal of STOPS) process.on(signal, onStop)
  try {
    const [npm, ...args] = npmCommand()
    const quiet = ['--ignore-scripts', '--no-audit', '--no-fund', '--no-save', '--loglevel=error']
    await run(npm, [...args, 'install', `--prefix=${made}`, '--prefer-offline', ...quiet, what], {
      env: { ...process.env, npm_config_global: 'false' },
      signal: stop.signal,
    })
    await run(join(made, program), ['--version'])
    // A folder without the program, which something has cleaned, is in the way.
    if (existsSync(folder) && !existsSync(join(folder, program))) renameSync(folder, broken)
    renameSync(made, folder)
  } catch (error) {
    if (stop.signal.aborted) throw new Error('it was stopped', { cause: error })
    if (!existsSync(join(folder, program))) throw error
  } finally {
    for (const signal of STOPS) process.off(signal, onStop)
    // npm may still be writing as it ends.
    for (const rest of [made, broken]) rmSync(rest, { recursive: true, force: true, maxRetries: 5 })
  }
}

/** npx says where its npm is; else the one that is found first. Yarn and pnpm name themselves there. */
function npmCommand() {
  const { npm_execpath: npm = '' } = process.env
  return basename(npm) === 'npm-cli.js' ? [process.execPath, npm] : ['npm']
}

/** As `cacheFolder` of the command line. */
function cacheFolder() {
  const { XDG_CACHE_HOME: cache = '' } = process.env
  return join(isAbsolute(cache) ? cache : join(homedir(), '.cache'), 'tutti')
}
