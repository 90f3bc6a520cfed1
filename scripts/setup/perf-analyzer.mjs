import { existsSync, globSync, readdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { APT_GET, installDebianPackages } from './debian-packages.mjs'
import { SetupFailure } from './failure.mjs'
import { ensurePython } from './python.mjs'

const LIBRARIES = '/usr/lib'

/**
 * `TUTTI_PERF_ANALYZER`, NVIDIA's program that makes load, from a wheel on PyPI; or `TUTTI_PERF_ANALYZER_MISSING`, why there is
 * none: those tests then report themselves as skipped. Debian's libb64-0d is installed if it is not there.
 */
export async function findPerfAnalyzer(
  requirements,
  { env = process.env, say = console.error, platform = `${process.platform}-${process.arch}` } = {},
) {
  if (env.TUTTI_PERF_ANALYZER) return { TUTTI_PERF_ANALYZER: env.TUTTI_PERF_ANALYZER }
  if (platform !== 'linux-x64')
    return missing(`the wheel is for linux-x64, and this is ${platform}`)
  try {
    await ensureBase64({ env, say })
    const python = await ensurePython(requirements, ['--no-deps'])
    return { TUTTI_PERF_ANALYZER: makeProgram(dirname(python)) }
  } catch (error) {
    if (!(error instanceof SetupFailure)) throw error
    // A machine without network tests everything else.
    return missing(error.message.trim().split('\n').at(-1))
  }
}

/** @throws SetupFailure */
async function ensureBase64(o) {
  if (hasBase64()) return
  if (!existsSync(APT_GET)) throw new SetupFailure('there is no libb64.so.0d, and no apt-get')
  if (process.getuid() !== 0) throw new SetupFailure('try: sudo apt-get install libb64-0d')
  // No file by which it is known: its folder has the name of the architecture.
  await installDebianPackages({ 'libb64-0d': '/nowhere' }, o)
}

function hasBase64() {
  if (!existsSync(LIBRARIES)) return false
  return readdirSync(LIBRARIES).some((name) => existsSync(join(LIBRARIES, name, 'libb64.so.0d')))
}

/** The program is linked to CUDA, which need not be used. */
function makeProgram(bin) {
  const program = join(bin, 'tutti-perf-analyzer')
  const [library] = globSync(join(bin, '../lib/python3*/site-packages/nvidia/cuda_runtime/lib'))
  writeFileSync(
    program,
    `#!/bin/sh\nexport LD_LIBRARY_PATH=${library}\nexec ${join(bin, 'perf_analyzer')} "$@"\n`,
    { mode: 0o755 },
  )
  return program
}

function missing(reason) {
  return { TUTTI_PERF_ANALYZER_MISSING: `there is no perf_analyzer: ${reason}` }
}
