import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { runCaptured, runChild } from '../setup/child.mjs'
import { SetupFailure } from '../setup/failure.mjs'

/**
 * Publishes the package that `npm run package` has left. Does nothing if npm has the same one, so that a release that failed later on
 * can be run again.
 *
 * @param {{ version: string, out: string, isDryRun: boolean }} release
 * @param {{ command: string, args: readonly string[] }} npm
 * @throws SetupFailure if npm has another package of this version, or refuses this one.
 */
export async function publishPackage({ version, out, isDryRun }, { command, args }) {
  const tarball = join(out, `tutti-${version}.tgz`)
  const view = ['view', `tutti@${version}`, 'dist.integrity', '--prefer-online', '--json']
  const { code: missing, written } = await runCaptured(command, [...args, ...view])
  const [published] = missing === 0 ? (/sha512-[\w+/=]+/.exec(written) ?? []) : []
  if (isPublished({ version, published, packed: integrityOf(readFileSync(tarball)) })) {
    console.log(`npm has this tutti ${version} already.`)
    return
  }
  // A version like 1.0.0-rc.1 does not become what `npm install` takes by itself.
  const tag = version.includes('-') ? 'next' : 'latest'
  const how = isDryRun ? '--dry-run' : '--provenance'
  const flags = ['--access=public', `--tag=${tag}`, how]
  const code = await runChild(command, [...args, 'publish', tarball, ...flags])
  if (code !== 0) throw new SetupFailure(`npm publish failed with exit code ${code}.`)
}

/** As npm writes it: `sha512-BASE64`. */
export function integrityOf(bytes) {
  return `sha512-${createHash('sha512').update(bytes).digest('base64')}`
}

/**
 * @param {{ version: string, published?: string, packed: string }} o - integrities; `published` is npm's, if it has the version.
 * @throws SetupFailure if they differ.
 */
export function isPublished({ version, published, packed }) {
  if (published === undefined) return false
  if (published === packed) return true
  throw new SetupFailure(
    `npm has another tutti ${version}: got ${published}, want ${packed}. Make a release with a new version.`,
  )
}
