import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { APT_GET, installDebianPackages } from './debian-packages.mjs'
import { SetupFailure } from './failure.mjs'

const LIBRARIES = '/usr/lib'

/**
 * Finds what tests that set clocks need to know: `TUTTI_FAKETIME`, Debian's libfaketime, which is installed if it is not there; or
 * `TUTTI_FAKETIME_MISSING`, why there is none: those tests then report themselves as skipped.
 */
export async function findFaketime({ env = process.env, say = console.error } = {}) {
  const found = search()
  if (found !== undefined) return { TUTTI_FAKETIME: found }
  if (!existsSync(APT_GET)) return missing('it is not here, and there is no apt-get to install it')
  if (process.getuid() !== 0) return missing('install it with: sudo apt-get install libfaketime')
  try {
    // No file by which it is known: its folder has the name of the architecture.
    await installDebianPackages({ libfaketime: '/nowhere' }, { env, say })
  } catch (error) {
    if (!(error instanceof SetupFailure)) throw error
    // A machine without network tests everything else.
    return missing(error.message.trim().split('\n').at(-1))
  }
  const installed = search()
  return installed === undefined ? missing('it has no library') : { TUTTI_FAKETIME: installed }
}

/** That for programs with threads. */
function search() {
  if (!existsSync(LIBRARIES)) return undefined
  return readdirSync(LIBRARIES)
    .map((name) => join(LIBRARIES, name, 'faketime', 'libfaketimeMT.so.1'))
    .find((path) => existsSync(path))
}

function missing(reason) {
  return { TUTTI_FAKETIME_MISSING: `there is no libfaketime: ${reason}` }
}
