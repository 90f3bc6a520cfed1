import { createHash } from 'node:crypto'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runQuietly } from '../setup/child.mjs'
import { SetupFailure } from '../setup/failure.mjs'
import { PUBLISHED } from './push.mjs'

/** The checksums of the files of the release, and the signature of that file. */
export const SUMS = 'SHA256SUMS'
const SIGNATURE = `${SUMS}.sigstore.json`

/**
 * Signs all that `push` has published, attests the SBOM of each image, and signs the checksums of the files of the release.
 *
 * @param {{ out: string, key?: string, isPlainHttp: boolean }} release - without a `key` Sigstore gives a certificate for the
 *   identity of the workflow, and its log has an entry of each signature; with one, no service is asked.
 * @param {string} cosign - path of the program. The password of the key is in COSIGN_PASSWORD.
 * @throws SetupFailure
 */
export async function signRelease({ out, key, isPlainHttp }, cosign) {
  const work = mkdtempSync(join(tmpdir(), 'tutti-sign-'))
  const run = (args) => runQuietly(`cosign ${args[0]}`, cosign, args)
  try {
    const how = ['--yes', ...(key === undefined ? [] : await withKey(key, work, run))]
    const inRegistry = [...how, ...(isPlainHttp ? ['--allow-http-registry'] : [])]
    for (const { reference, sbom } of readPublished(out)) {
      await run(['sign', ...inRegistry, reference])
      if (sbom === undefined) continue
      const predicate = join(work, sbom)
      const statement = JSON.parse(readFileSync(join(out, sbom), 'utf8'))
      writeFileSync(predicate, JSON.stringify(statement.predicate))
      await run([
        'attest',
        ...inRegistry,
        '--type=cyclonedx',
        `--predicate=${predicate}`,
        reference,
      ])
    }
    writeSums(out)
    await run(['sign-blob', ...how, `--bundle=${join(out, SIGNATURE)}`, join(out, SUMS)])
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

function readPublished(out) {
  const file = join(out, PUBLISHED)
  if (!existsSync(file)) throw new SetupFailure(`${file} is not there: npm run release -- push`)
  return JSON.parse(readFileSync(file, 'utf8'))
}

/** Flags for a key pair. Configurations that name no service keep cosign from asking one. */
async function withKey(key, work, run) {
  const [config, trusted] = ['signing-config.json', 'trusted-root.json'].map((x) => join(work, x))
  await run(['signing-config', 'create', `--out=${config}`])
  await run(['trusted-root', 'create', `--out=${trusted}`])
  return [`--key=${key}`, `--signing-config=${config}`, `--trusted-root=${trusted}`]
}

/** As `sha256sum --check` reads them. */
function writeSums(out) {
  const names = readdirSync(out).filter((name) => !name.startsWith(SUMS))
  const lines = names.toSorted().map((name) => {
    const sum = createHash('sha256')
      .update(readFileSync(join(out, name)))
      .digest('hex')
    return `${sum}  ${name}\n`
  })
  writeFileSync(join(out, SUMS), lines.join(''))
}
