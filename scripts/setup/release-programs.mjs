import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { cacheFolder } from './cache-folder.mjs'
import { findInPath } from './child.mjs'
import { unpackDebianPackage } from './debian-packages.mjs'
import { orMissing, SetupFailure } from './failure.mjs'
import { buildOnce } from './go-build.mjs'
import { ensureGoProgram } from './go-program.mjs'
import { foundKubeBinaries } from './kube-binaries.mjs'

/** The programs that publish and sign, and the one that checks the workflow. */
const PROGRAMS = {
  oras: { name: 'oras', package: 'oras.land/oras/cmd/oras', version: '1.3.6' },
  cosign: { name: 'cosign', package: 'github.com/sigstore/cosign/v3/cmd/cosign', version: '3.1.3' },
  actionlint: {
    name: 'actionlint',
    package: 'github.com/rhysd/actionlint/cmd/actionlint',
    version: '1.7.12',
  },
}

/**
 * The path of a program of the release, of one version everywhere.
 *
 * @param {keyof typeof PROGRAMS} name
 * @throws SetupFailure if it cannot be built.
 */
export async function ensureReleaseProgram(name, { env = process.env, say = console.error } = {}) {
  return env[`TUTTI_${name.toUpperCase()}`] || (await ensureGoProgram(PROGRAMS[name], { env, say }))
}

/** The helm of the tests, else that of PATH. @throws SetupFailure if there is none. */
export function findHelm(env = process.env) {
  const built = join(foundKubeBinaries(env) ?? '', 'helm')
  const [found] = [...(existsSync(built) ? [built] : []), ...findInPath('helm', env)]
  if (found === undefined)
    throw new SetupFailure('helm is not in PATH: https://helm.sh/docs/intro/install')
  return found
}

/**
 * Finds what tests of the release need: `TUTTI_ORAS`, `TUTTI_ACTIONLINT` and `TUTTI_REGISTRY`, a docker-registry; or with
 * `_MISSING` why there is none: those tests then report themselves as skipped.
 */
export async function findReleasePrograms(o = {}) {
  const found = await Promise.all([
    orMissing('TUTTI_ORAS', () => ensureReleaseProgram('oras', o)),
    orMissing('TUTTI_ACTIONLINT', () => ensureReleaseProgram('actionlint', o)),
    orMissing('TUTTI_REGISTRY', () => ensureRegistry(o)),
  ])
  return Object.assign({}, ...found)
}

/** `TUTTI_COSIGN`, or with `_MISSING` why there is none. */
export function findCosign(o = {}) {
  return orMissing('TUTTI_COSIGN', () => ensureReleaseProgram('cosign', o))
}

/** Unpacked, not installed: Debian's package starts a service. */
async function ensureRegistry({ env = process.env, say = console.error }) {
  const [found] = findInPath('docker-registry', env)
  if (env.TUTTI_REGISTRY || found) return env.TUTTI_REGISTRY || found
  const folder = join(cacheFolder(env), `docker-registry-debian-${process.arch}`)
  await buildOnce(folder, { what: "docker-registry from Debian's package", say }, (parts) =>
    unpackDebianPackage('docker-registry', { ...parts, env }),
  )
  return join(folder, 'usr', 'bin', 'docker-registry')
}
