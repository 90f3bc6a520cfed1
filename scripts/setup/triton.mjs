import { chmodSync, copyFileSync, existsSync, globSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { firstLine } from './child.mjs'
import { SetupFailure } from './failure.mjs'
import { ensurePython } from './python.mjs'

const STUB = 'triton_python_backend_stub'
/** Where a Python has its library, and which versions the wheel has a stub for and NumPy 1.26 is built for. */
const PROBE =
  'import sys, sysconfig; v = sysconfig.get_config_vars(); ' +
  'print("%d.%d" % sys.version_info[:2], v["LIBDIR"], v["INSTSONAME"])'
const VERSIONS = ['3.10', '3.11', '3.12']

/**
 * Finds what the comparison with a real Triton needs to know: `TUTTI_TRITON`, a program that takes tritonserver's flags, or
 * `TUTTI_TRITON_MISSING`, why there is none; it then reports itself as skipped. It comes from NVIDIA's wheel on PyPI, which has a
 * Triton 2.51 with the python backend for Linux on x86-64.
 */
export async function findTriton(
  requirements,
  { env = process.env, platform = `${process.platform}-${process.arch}` } = {},
) {
  if (env.TUTTI_TRITON) return { TUTTI_TRITON: env.TUTTI_TRITON }
  if (platform !== 'linux-x64')
    return missing(`the wheel is for linux-x64, and this is ${platform}`)
  const { version, folder, reason } = findLibrary()
  if (reason !== undefined) return missing(reason)
  try {
    const python = await ensurePython(requirements, ['--no-deps'])
    return { TUTTI_TRITON: makeProgram(dirname(dirname(python)), version, folder) }
  } catch (error) {
    if (!(error instanceof SetupFailure)) throw error
    // A machine without network tests everything else.
    return missing(error.message.trim().split('\n').at(-1))
  }
}

/** The version of python3, and where its library is; or a reason why it does not do. */
function findLibrary() {
  const [version = 'none', folder, library] = firstLine('python3', ['-c', PROBE])?.split(' ') ?? []
  if (!VERSIONS.includes(version)) {
    return { reason: `it takes Python ${VERSIONS.join(', ')}; python3 is ${version}` }
  }
  if (existsSync(join(folder, library))) return { version, folder }
  return { reason: `python3 has no ${join(folder, library)}` }
}

/** Puts the stub where the backend looks for it, and writes the program that sets what Triton wants around it. */
function makeProgram(environment, version, libraries) {
  const program = join(environment, 'bin', 'tutti-tritonserver')
  if (existsSync(program)) return program
  const [home] = globSync(
    join(environment, 'lib', 'python3*', 'site-packages', 'pytriton', 'tritonserver'),
  )
  const server = join(home, 'bin', 'tritonserver')
  const stub = join(home, 'backends', 'python', STUB)
  copyFileSync(join(home, 'python_backend_stubs', version, STUB), stub)
  for (const path of [server, stub]) chmodSync(path, 0o755)
  // The stub finds its packages by the python3 that is first in PATH.
  const text = `#!/bin/sh
export PATH=${join(environment, 'bin')}:$PATH LD_LIBRARY_PATH=${libraries}
exec ${server} --backend-directory=${join(home, 'backends')} --cache-directory=${join(home, 'caches')} "$@"
`
  writeFileSync(`${program}-new`, text, { mode: 0o755 })
  renameSync(`${program}-new`, program)
  return program
}

function missing(reason) {
  return { TUTTI_TRITON_MISSING: `there is no Triton: ${reason}` }
}
