import { createHash } from 'node:crypto'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { cacheFolder } from './cache-folder.mjs'
import { firstLine, runQuietly } from './child.mjs'
import { SetupFailure } from './failure.mjs'
import { withLock } from './lock.mjs'

const OLDEST_MINOR = 10

/**
 * A Python with the packages of a requirements file, in a cache folder outside the checkout.
 *
 * @param {string} requirements - path of the file; a change of it makes another environment.
 * @param {readonly string[]} [options] - of pip install.
 * @returns {Promise<string>} the interpreter.
 * @throws SetupFailure if there is no Python 3, no venv module, or the packages cannot be installed.
 */
export async function ensurePython(requirements, options = []) {
  const version = findVersion()
  const key = createHash('sha256')
    .update(readFileSync(requirements))
    .update([version, process.platform, process.arch, ...options].join(' '))
    .digest('hex')
    .slice(0, 16)
  const folder = join(cacheFolder(), `python-${key}`)
  const stamp = join(folder, '.complete')
  const python = join(folder, 'bin', 'python')
  if (existsSync(stamp)) return python
  await withLock(`${folder}.lock`, async () => {
    if (existsSync(stamp)) return
    rmSync(folder, { recursive: true, force: true })
    console.error(`Installing Python packages into ${folder} (once) ...`)
    await makeEnvironment(folder)
    const pip = [
      '-m',
      'pip',
      'install',
      '--progress-bar=off',
      '--disable-pip-version-check',
      '--no-input',
    ]
    await runQuietly('pip install', python, [...pip, ...options, '--requirement', requirements])
    writeFileSync(stamp, '')
  })
  return python
}

function findVersion() {
  const line = firstLine('python3', ['--version'])
  const [, minor] = /^Python 3\.(\d+)/.exec(line ?? '') ?? []
  if (Number(minor) >= OLDEST_MINOR) return line
  throw new SetupFailure(
    `Python 3.${OLDEST_MINOR} or newer is needed, as python3; found ${line ?? 'none'}.\n` +
      'Install it from your system, for example: apt-get install python3 python3-venv',
  )
}

async function makeEnvironment(folder) {
  // Debian has venv without ensurepip until python3-venv is installed.
  if (firstLine('python3', ['-c', 'import venv, ensurepip; print(1)']) === undefined) {
    throw new SetupFailure(
      "Python's venv module is needed, which this python3 lacks.\n" +
        'Install it from your system, for example: apt-get install python3-venv',
    )
  }
  await runQuietly('python3 -m venv', 'python3', ['-m', 'venv', folder])
}
