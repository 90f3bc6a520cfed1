import { copyFileSync, existsSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { blobOf, readFromArchive } from '../images/attestation.mjs'
import { IMAGES } from '../images/catalogue.mjs'
import { runCaptured } from '../setup/child.mjs'
import { SetupFailure } from '../setup/failure.mjs'
import { chartPackage } from './pack.mjs'

/** The file that lists what has been published, in the folder of the release. */
export const PUBLISHED = 'published.json'
/** @see https://artifacthub.io/docs/topics/repositories/helm-charts */
const ARTIFACT_HUB = 'application/vnd.cncf.artifacthub'

/**
 * @typedef {object} Published - an image, an index of images or a chart in the registry.
 * @property {string} reference - by digest: `ghcr.io/OWNER/tutti/step@sha256:...`.
 * @property {string} [sbom] - file name of the image's SBOM, in the folder of the release.
 */

/**
 * Pushes images: each as an index of the platforms for which there is an archive, under the version, and the images themselves
 * without a tag. Leaves their SBOMs in the folder of the release.
 *
 * @param {import('./pack.mjs').Release & { images: readonly string[], isPlainHttp: boolean }} release - `images` are
 *   folders that `npm run images` has filled, one for each platform.
 * @param {string} oras - path of the program.
 * @returns {Promise<Published[]>}
 * @throws SetupFailure if a folder lacks an image that another one has.
 */
export async function pushImages(release, oras) {
  const { registry, version, images: folders, isPlainHttp } = release
  const names = Object.keys(IMAGES).filter((name) =>
    folders.some((folder) => existsSync(archiveOf(folder, name))),
  )
  if (names.length === 0) throw new SetupFailure(`${folders.join(', ')}: no images are there.`)
  const done = []
  for (const name of names) {
    const repository = `${registry}/tutti/${name}`
    const platforms = []
    for (const folder of folders) platforms.push(await pushPlatform(folder, name, release, oras))
    const digests = platforms.map(({ digest }) => digest)
    const index = [`${repository}:${version}`, ...digests, ...(isPlainHttp ? ['--plain-http'] : [])]
    const digest = digestIn(await run(oras, ['manifest', 'index', 'create', ...index]))
    done.push({ reference: `${repository}@${digest}` })
    for (const { digest: own, sbom } of platforms) {
      done.push({ reference: `${repository}@${own}`, sbom })
    }
  }
  return done
}

async function pushPlatform(folder, name, { registry, out, isPlainHttp }, oras) {
  const archive = archiveOf(folder, name)
  if (!existsSync(archive)) throw new SetupFailure(`${archive} is not there: npm run images`)
  const { digest, platform } = describe(archive)
  const from = ['cp', '--no-tty', '--from-oci-layout', `${archive}@${digest}`]
  const flags = isPlainHttp ? ['--to-plain-http'] : []
  await run(oras, [...from, ...flags, `${registry}/tutti/${name}`])
  const sbom = `${name}-${platform}.sbom.json`
  copyFileSync(join(folder, `${name}.sbom.json`), join(out, sbom))
  return { digest, sbom }
}

function archiveOf(folder, name) {
  return join(folder, `${name}.tar`)
}

/** The digest of the image of an archive, and its platform: `amd64`. */
function describe(archive) {
  const [manifest] = readFromArchive(archive, 'index.json').manifests
  const { config } = readFromArchive(archive, blobOf(manifest.digest))
  return {
    digest: manifest.digest,
    platform: readFromArchive(archive, blobOf(config.digest)).architecture,
  }
}

/**
 * Pushes the chart, and what Artifact Hub reads beside it.
 *
 * @param {import('./pack.mjs').Release & { isPlainHttp: boolean }} release
 * @param {{ helm: string, oras: string }} programs - their paths.
 * @returns {Promise<Published[]>}
 */
export async function pushChart({ root, registry, version, out, isPlainHttp }, { helm, oras }) {
  const flags = isPlainHttp ? ['--plain-http'] : []
  const charts = `${registry}/charts`
  const chart = chartPackage({ out, version })
  const digest = digestIn(await run(helm, ['push', chart, `oci://${charts}`, ...flags]))
  const metadata = join(root, 'charts', 'artifacthub-repo.yml')
  await run(
    oras,
    [
      'push',
      '--no-tty',
      ...flags,
      `${charts}/tutti:artifacthub.io`,
      `--config=/dev/null:${ARTIFACT_HUB}.config.v1+yaml`,
      `${basename(metadata)}:${ARTIFACT_HUB}.repository-metadata.layer.v1.yaml`,
    ],
    { cwd: join(root, 'charts') },
  )
  return [{ reference: `${charts}/tutti@${digest}` }]
}

/** Notes what has been published, for `sign`. @param {readonly Published[]} published */
export function notePublished({ out }, published) {
  writeFileSync(join(out, PUBLISHED), `${JSON.stringify(published, undefined, 2)}\n`)
}

function digestIn(written) {
  const [, digest] = /^Digest: (sha256:[0-9a-f]{64})$/m.exec(written) ?? []
  if (digest === undefined) throw new SetupFailure(`want a digest, got:\n${written}`)
  return digest
}

/** @returns {Promise<string>} what the program wrote. @throws SetupFailure with that, if it fails. */
async function run(program, args, options) {
  const { code, written } = await runCaptured(program, args, options)
  if (code === 0) return written
  throw new SetupFailure(`${written}\n${basename(program)} ${args[0]} failed with code ${code}.`)
}
