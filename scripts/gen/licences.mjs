// Writes images/licences.md: the packages of npm in each image with their licences, from package-lock.json.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { renderTable } from './table.mjs'

const PROGRAMS = { operator: 'operator', router: 'services/router', step: 'services/step' }

/** Licences that let everybody pass the package on within a product of the Apache licence. */
const ALLOWED = new Set(['0BSD', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', 'BlueOak-1.0.0', 'ISC', 'MIT', 'PSF-2.0', 'Unlicense'])

/**
 * Licence of shared libraries that a product may pass on as files of their own, which can be replaced by others, with a note where their
 * sources are: the head of the list has it.
 */
const LIBRARY_LICENCE = 'LGPL-3.0-or-later'
const LIBRARIES = /^@img\/sharp-/

const HEAD = `# Licences of the packages in the images

Made from package-lock.json by \`npm run gen\`, which fails for a licence that is not one of ${[...ALLOWED].toSorted().join(', ')}.
Tutti itself is under the [Apache licence](../LICENSE). Node, the packages of Debian and PyPI, and the networks of PaddleOCR
(Apache-2.0, in \`samples\`), which images have besides, are in the [SBOM](README.md#sbom) of each image, Debian's licences in its folder \`/usr/share/doc\`.

Packages \`@img/sharp-*\` may be under ${LIBRARY_LICENCE} as well: libvips and the libraries in it. They are shared libraries, as npm has them, in
files of their own, which you can replace. Their README lists their licences; their sources are at <https://github.com/lovell/sharp-libvips>.

`

/** @param root - of the checkout. */
export function writeLicences(root) {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'))
  writeFileSync(join(root, 'images', 'licences.md'), HEAD + renderLicences(packages))
}

/**
 * The table of packages, sorted by name and version.
 *
 * @param packages - of package-lock.json, by path.
 * @throws Error that names a package whose licence is none of ALLOWED.
 */
export function renderLicences(packages) {
  const found = new Map()
  for (const [program, workspace] of Object.entries(PROGRAMS)) {
    for (const path of installedFor(packages, workspace)) {
      const { version, license } = packages[path]
      const name = path.split('node_modules/').at(-1)
      if (!isAllowed(license, name)) throw new Error(`${name}@${version}: licence ${license}, want one of ${[...ALLOWED]}`)
      const key = `${name}@${version}`
      const row = found.get(key) ?? { name, version, license, images: [] }
      if (!row.images.includes(program)) row.images.push(program)
      found.set(key, row)
    }
  }
  const rows = [...found].toSorted(([one], [other]) => (one < other ? -1 : 1)).map(([, row]) => row)
  return `${renderTable([
    ['package', 'version', 'licence', 'images'],
    ...rows.map(({ name, version, license, images }) => [name, version, license, images.join(', ')]),
  ])}\n`
}

/** True for a licence of the list, for a choice, `(MIT OR CC0-1.0)` say, that has one, and for several of which all are allowed. */
function isAllowed(expression = '', name = '') {
  const allows = (licence) => ALLOWED.has(licence) || (licence === LIBRARY_LICENCE && LIBRARIES.test(name))
  const all = expression.replace(/^\((.*)\)$/, '$1').split(' AND ')
  return all.every((choice) => choice.split(' OR ').some(allows))
}

/** Paths of the packages that `npm ci --omit=dev --workspace` may install for a workspace, on any platform. */
export function installedFor(packages, workspace) {
  const seen = new Set()
  const visit = (path) => {
    if (seen.has(path)) return
    seen.add(path)
    const { dependencies, optionalDependencies, peerDependencies, peerDependenciesMeta } = packages[path]
    const isOptionalPeer = (name) => peerDependenciesMeta?.[name]?.optional === true
    const names = [
      ...Object.keys({ ...dependencies, ...optionalDependencies }),
      ...Object.keys({ ...peerDependencies }).filter((name) => !isOptionalPeer(name)),
    ]
    for (const name of names) {
      const found = resolve(packages, path, name)
      if (found !== undefined) visit(found)
    }
  }
  visit(workspace)
  return [...seen].filter((path) => path.includes('node_modules/'))
}

/** As Node looks for a package: in the folder, then in each above it. */
function resolve(packages, from, name) {
  for (let folder = from; ; folder = folder.includes('/') ? folder.slice(0, folder.lastIndexOf('/')) : '') {
    const path = folder === '' ? `node_modules/${name}` : `${folder}/node_modules/${name}`
    const entry = packages[path]
    if (entry !== undefined) return entry.link ? entry.resolved : path
    if (folder === '') return undefined
  }
}
