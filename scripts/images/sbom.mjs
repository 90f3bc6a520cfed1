// Writes what an image holds, as SPDX: node sbom.mjs tutti/step /app (inside the build; the file is /app/sbom.spdx.json).
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const DPKG_STATUS = 'var/lib/dpkg/status'
/** Where packages of pip are; Debian's own are in dpkg's list. */
const PYTHON_PARENTS = ['usr/local/lib', 'opt/python/lib']

/**
 * @typedef {{ name: string, version: string, purl: string, license?: string }} Package
 */

/**
 * Packages of an installed tree of node_modules, nested ones too; links to rooms are left out, for they are ours.
 *
 * @returns {Package[]}
 */
export function nodePackages(folder) {
  if (!existsSync(folder)) return []
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .flatMap(({ name }) => {
      const path = join(folder, name)
      if (name.startsWith('@')) return nodePackages(path)
      const nested = nodePackages(join(path, 'node_modules'))
      if (!existsSync(join(path, 'package.json'))) return nested
      const found = JSON.parse(readFileSync(join(path, 'package.json'), 'utf8'))
      const { version, license } = found
      const purl = `pkg:npm/${found.name.replace('@', '%40')}@${version}`
      return [
        { name: found.name, version, purl, ...(typeof license === 'string' && { license }) },
        ...nested,
      ]
    })
}

/**
 * What dpkg has installed.
 *
 * @param {string} status - text of /var/lib/dpkg/status.
 * @param {string} distribution - `debian` or `ubuntu`.
 * @returns {Package[]}
 */
export function debianPackages(status, distribution) {
  return status.split('\n\n').flatMap((paragraph) => {
    const field = (name) => new RegExp(`^${name}: (.*)$`, 'm').exec(paragraph)?.[1]
    if (!field('Status')?.endsWith(' installed')) return []
    const [name, version, arch] = [field('Package'), field('Version'), field('Architecture')]
    const purl = `pkg:deb/${distribution}/${name}@${encodeURIComponent(version)}?arch=${arch}`
    return [{ name, version, purl }]
  })
}

/**
 * Packages of a folder of pip.
 *
 * @returns {Package[]}
 */
export function pythonPackages(folder) {
  if (!existsSync(folder)) return []
  return readdirSync(folder)
    .filter((entry) => entry.endsWith('.dist-info'))
    .flatMap((entry) => {
      const metadata = join(folder, entry, 'METADATA')
      if (!existsSync(metadata)) return []
      const text = readFileSync(metadata, 'utf8').split('\n\n')[0]
      const field = (key) => new RegExp(`^${key}: (.*)$`, 'm').exec(text)?.[1]
      const [name, version] = [field('Name'), field('Version')]
      const license = field('License-Expression')
      const purl = `pkg:pypi/${name.toLowerCase().replaceAll('_', '-')}@${version}`
      return [{ name, version, purl, ...(license !== undefined && { license }) }]
    })
}

/**
 * An SPDX 2.3 document. The same packages give the same bytes, but for `created`.
 *
 * @param {{ image: string, version: string, created: Date, packages: Package[] }} o
 */
export function toSpdx({ image, version, created, packages }) {
  const unique = [...new Map(packages.map((found) => [found.purl, found])).values()].toSorted(
    (a, b) => (a.purl < b.purl ? -1 : 1),
  )
  const digest = createHash('sha256')
    .update(unique.map(({ purl }) => purl).join('\n'))
    .digest('hex')
  const root = {
    name: image,
    version,
    purl: `pkg:oci/${image.split('/').at(-1)}@${version}`,
    license: 'Apache-2.0',
  }
  const elements = [root, ...unique].map(toSpdxPackage)
  const [{ SPDXID: rootId }, ...parts] = elements
  return {
    spdxVersion: 'SPDX-2.3',
    dataLicense: 'CC0-1.0',
    SPDXID: 'SPDXRef-DOCUMENT',
    name: `${image}:${version}`,
    documentNamespace: `https://tutti.dev/spdx/${image}/${version}/${digest}`,
    creationInfo: {
      created: created.toISOString().replace(/\.\d+Z$/, 'Z'),
      creators: ['Tool: tutti-sbom'],
    },
    packages: elements,
    relationships: [
      relate('SPDXRef-DOCUMENT', 'DESCRIBES', rootId),
      ...parts.map(({ SPDXID }) => relate(rootId, 'CONTAINS', SPDXID)),
    ],
  }
}

function toSpdxPackage({ name, version, purl, license }) {
  return {
    // Letters, digits, dots and hyphens are all that an identifier may have.
    SPDXID: `SPDXRef-${purl.replace(/[^A-Za-z0-9.]+/g, '-')}`,
    name,
    versionInfo: version,
    downloadLocation: 'NOASSERTION',
    filesAnalyzed: false,
    licenseConcluded: 'NOASSERTION',
    // What is no SPDX expression ("SEE LICENSE IN ...") would make the document invalid.
    licenseDeclared:
      /^[A-Za-z0-9.+() -]+$/.test(license ?? '') && !/^(see|unlicensed)\b/i.test(license)
        ? license
        : 'NOASSERTION',
    copyrightText: 'NOASSERTION',
    externalRefs: [
      { referenceCategory: 'PACKAGE-MANAGER', referenceType: 'purl', referenceLocator: purl },
    ],
  }
}

function relate(spdxElementId, relationshipType, relatedSpdxElement) {
  return { spdxElementId, relationshipType, relatedSpdxElement }
}

/** @param {string} root - of the image's file system. */
export function packagesOf(root, app) {
  const release = readFileSync(join(root, 'etc/os-release'), 'utf8')
  const distribution = /^ID="?(\w+)/m.exec(release)?.[1] ?? 'debian'
  return [
    {
      name: 'node',
      version: process.versions.node,
      purl: `pkg:generic/node@${process.versions.node}`,
      license: 'MIT',
    },
    ...debianPackages(readFileSync(join(root, DPKG_STATUS), 'utf8'), distribution),
    ...nodePackages(join(app, 'node_modules')),
    // npm comes with the base.
    ...nodePackages(join(root, 'usr/local/lib/node_modules')),
    ...pythonFolders(root).flatMap((folder) => pythonPackages(join(root, folder))),
  ]
}

function pythonFolders(root) {
  return PYTHON_PARENTS.filter((parent) => existsSync(join(root, parent))).flatMap((parent) =>
    readdirSync(join(root, parent))
      .filter((name) => /^python3\.\d+$/.test(name))
      .flatMap((name) =>
        ['dist-packages', 'site-packages'].map((last) => join(parent, name, last)),
      ),
  )
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [image, app] = process.argv.slice(2)
  const manifests = ['operator', 'services/router', 'services/step'].map((room) =>
    join(app, room, 'package.json'),
  )
  const { version } = JSON.parse(readFileSync(manifests.find(existsSync), 'utf8'))
  const document = toSpdx({ image, version, created: new Date(), packages: packagesOf('/', app) })
  writeFileSync(join(app, 'sbom.spdx.json'), `${JSON.stringify(document, undefined, 1)}\n`)
}
