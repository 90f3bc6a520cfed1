import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { cacheFolder } from './cache-folder.mjs'
import { findInPath, runQuietly } from './child.mjs'
import { SetupFailure } from './failure.mjs'
import { withLock } from './lock.mjs'

/** torch.jit.optimize_for_inference came with 1.10. */
const PROBE =
  'import sys, numpy, torch; v = torch.__version__.split(".")[:2]; ' +
  'sys.exit(0 if sys.version_info >= (3, 9) and tuple(map(int, v)) >= (1, 10) else 1)'
const THIS = {
  isRoot: process.getuid?.() === 0,
  aptGet: '/usr/bin/apt-get',
  debianPython: '/usr/bin/python3',
}

/**
 * Finds what the tests of TorchScript models need to know: `TUTTI_TEST_TORCH_PYTHON`, an interpreter with PyTorch and NumPy, or
 * `TUTTI_TEST_TORCH_MISSING`, why there is none; the tests that need it then report themselves as skipped.
 *
 * In this order: the one that TUTTI_TEST_TORCH_PYTHON names; a python3 of PATH; the system's, with Debian's packages, which
 * root installs. PyPI's for Linux on x86-64 brings gigabytes of CUDA and is not installed.
 *
 * @param {{ env?: NodeJS.ProcessEnv, system?: { isRoot: boolean, aptGet: string,
 *   debianPython: string }, say?: (line: string) => void }} o
 * @throws SetupFailure if TUTTI_TEST_TORCH_PYTHON names something else.
 */
export async function findTorch({ env = process.env, system = THIS, say = console.error } = {}) {
  const named = env.TUTTI_TEST_TORCH_PYTHON
  if (named) {
    if (await hasTorch(named)) return { TUTTI_TEST_TORCH_PYTHON: named }
    throw new SetupFailure(
      `TUTTI_TEST_TORCH_PYTHON is ${named}; it does not import torch 1.10 and numpy on Python 3.9, or newer.`,
    )
  }
  for (const python of [...findInPath('python3', env), system.debianPython]) {
    if (existsSync(python) && (await hasTorch(python))) return { TUTTI_TEST_TORCH_PYTHON: python }
  }
  try {
    return await install({ env, system, say })
  } catch (error) {
    if (!(error instanceof SetupFailure)) throw error
    // A machine without network tests everything else.
    const reason = error.message.trim().split('\n').at(-1)
    return { TUTTI_TEST_TORCH_MISSING: `PyTorch could not be installed: ${reason}` }
  }
}

async function install({ env, system, say }) {
  if (!existsSync(system.aptGet)) {
    return missing('no Python here imports torch and numpy, and there is no apt-get')
  }
  if (!system.isRoot) {
    return missing('install it with: sudo apt-get install python3-torch python3-numpy')
  }
  const options = { env: { ...env, DEBIAN_FRONTEND: 'noninteractive' } }
  const packages = ['--no-install-recommends', 'python3-torch', 'python3-numpy']
  await withLock(join(cacheFolder(env), 'apt-get.lock'), async () => {
    if (await hasTorch(system.debianPython)) return
    say('Installing python3-torch for the tests (once) ...')
    await runQuietly('apt-get update', system.aptGet, ['update', '-q'], options)
    await runQuietly(
      'apt-get install python3-torch',
      system.aptGet,
      ['install', '-q', '-y', ...packages],
      options,
    )
  })
  if (await hasTorch(system.debianPython)) return { TUTTI_TEST_TORCH_PYTHON: system.debianPython }
  return missing(`${system.debianPython} does not import what python3-torch has installed`)
}

function missing(reason) {
  return { TUTTI_TEST_TORCH_MISSING: `PyTorch is not installed: ${reason}` }
}

/** Whether an interpreter has what the tests need. It imports them: a package that is there may still not load. */
async function hasTorch(python) {
  const child = spawn(python, ['-c', PROBE], { stdio: 'ignore' })
  return await new Promise((resolve) => {
    child.once('error', () => resolve(false))
    child.once('close', (code) => resolve(code === 0))
  })
}
