import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SetupFailure } from '../setup/failure.mjs'

/** The files of an image that say what is in it: what npm (assemble.sh), Debian and PyPI have installed, and which Debian it is. */
const NPM = 'app/sbom.cdx.json'
const DEBIAN = 'var/lib/dpkg/status'
const RELEASE = 'usr/lib/os-release'
const PYPI = 'opt/python/lib/python3*/site-packages/*.dist-info/METADATA'

/**
 * Describes what an image holds, as an attestation: a statement of in-toto (version 1) about the image's digest, whose predicate is
 * an SBOM of CycloneDX 1.5. Equal archives give equal text.
 *
 * @param {string} archive - of OCI, as buildah and docker save it.
 * @param {string} name - of the image.
 * @returns {string} JSON.
 * @throws SetupFailure if the archive has not what images of Tutti have.
 * @see https://in-toto.io/Statement/v1, https://cyclonedx.org/docs/1.5/json
 */
export function attest(archive, name) {
  const [{ digest }] = readFromArchive(archive, 'index.json').manifests
  const { layers } = readFromArchive(archive, blobOf(digest))
  const folder = mkdtempSync(join(tmpdir(), 'tutti-image-'))
  try {
    for (const layer of layers) extractLists(archive, blobOf(layer.digest), folder)
    const sbom = JSON.parse(readFileSync(join(folder, NPM), 'utf8'))
    const components = [...sbom.components, ...debianPackages(folder), ...pythonPackages(folder)]
    return `${JSON.stringify(
      {
        _type: 'https://in-toto.io/Statement/v1',
        subject: [{ name, digest: Object.fromEntries([digest.split(':')]) }],
        predicateType: 'https://cyclonedx.org/bom',
        predicate: { ...sbom, components },
      },
      null,
      2,
    )}\n`
  } catch (error) {
    throw new SetupFailure(`${archive}: ${error.message}`)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The entry of an OCI archive that has a digest. */
export function blobOf(digest) {
  return `blobs/${digest.replace(':', '/')}`
}

/** JSON of an OCI archive. @throws SetupFailure if the entry is not there. */
export function readFromArchive(archive, entry) {
  const { status, stdout, stderr } = spawnSync('tar', ['-xOf', archive, entry], {
    encoding: 'utf8',
    maxBuffer: 1 << 26,
  })
  if (status !== 0) throw new SetupFailure(`${archive}: want ${entry} in it: ${stderr}`)
  return JSON.parse(stdout)
}

/** A file of a later layer takes the place of an earlier one. tar fails for a layer that has none of them, which is fine. */
const EXTRACT = `tar -xOf "$1" "$2" | gzip -dcf |
  tar -x -C "$3" --no-same-owner --wildcards --no-wildcards-match-slash "$4" "$5" "$6" "$7" 2>/dev/null`

function extractLists(archive, entry, folder) {
  const { error } = spawnSync('sh', [
    '-c',
    EXTRACT,
    'sh',
    archive,
    entry,
    folder,
    NPM,
    DEBIAN,
    RELEASE,
    PYPI,
  ])
  if (error !== undefined) throw error
}

function debianPackages(folder) {
  const release = readFileSync(join(folder, RELEASE), 'utf8')
  const ofRelease = (key) => new RegExp(`^${key}="?([^"\n]*)`, 'm').exec(release)?.[1] ?? ''
  const distribution = ofRelease('ID')
  const paragraphs = readFileSync(join(folder, DEBIAN), 'utf8').split(/\n\n+/)
  return paragraphs.flatMap((paragraph) => {
    const field = (key) => new RegExp(`^${key}: (.*)$`, 'm').exec(paragraph)?.[1] ?? ''
    if (!field('Status').endsWith(' installed')) return []
    const [name, version] = [field('Package'), field('Version')]
    const path = `${distribution}/${encodeURIComponent(name)}@${encodeURIComponent(version)}`
    const where = `arch=${field('Architecture')}&distro=${distribution}-${ofRelease('VERSION_ID')}`
    return [library(name, version, `pkg:deb/${path}?${where}`)]
  })
}

function pythonPackages(folder) {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  return files
    .filter((file) => file.endsWith('.dist-info/METADATA'))
    .toSorted()
    .map((file) => {
      const metadata = readFileSync(join(folder, file), 'utf8')
      const field = (key) => new RegExp(`^${key}: (.*)$`, 'm').exec(metadata)?.[1] ?? ''
      const [name, version] = [field('Name'), field('Version')]
      // As PyPI spells names in addresses.
      const path = name.toLowerCase().replace(/[-_.]+/g, '-')
      return library(name, version, `pkg:pypi/${path}@${version}`)
    })
}

function library(name, version, purl) {
  return { 'bom-ref': purl, type: 'library', name, version, purl }
}
