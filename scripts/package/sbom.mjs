import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { installedFor } from '../gen/licences.mjs'

/**
 * Lists `tutti` and its packages of npm, in the versions that the tests have: an SBOM of CycloneDX 1.5, from package-lock.json. Equal
 * checkouts give equal text. `npm sbom --omit=dev` leaves out packages that a tool of the checkout needs too.
 *
 * @param {string} root - of the checkout.
 * @see https://cyclonedx.org/docs/1.5/json
 */
export function packageSbom(root) {
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'))
  const found = installedFor(lock.packages, 'services/cli').map((path) => {
    const { version, license, integrity } = lock.packages[path]
    return component('library', { name: nameOf(path), version, license, integrity })
  })
  // A package may be installed in two places.
  const components = [...new Map(found.map((one) => [one.purl, one])).values()]
  const { name, version, license } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const sbom = {
    bomFormat: 'CycloneDX',
    specVersion: '1.5',
    version: 1,
    metadata: { component: component('application', { name, version, license }) },
    components: components.toSorted((one, other) => (one.purl < other.purl ? -1 : 1)),
  }
  return `${JSON.stringify(sbom, undefined, 2)}\n`
}

function nameOf(path) {
  return path.split('node_modules/').at(-1)
}

function component(type, { name, version, license, integrity }) {
  const purl = `pkg:npm/${name.replace('@', '%40')}@${version}`
  const [, content] = /^sha512-(.*)$/.exec(integrity ?? '') ?? []
  return {
    'bom-ref': purl,
    type,
    name,
    version,
    purl,
    // One licence, or a choice of several.
    licenses: [/ (OR|AND) /.test(license) ? { expression: license } : { license: { id: license } }],
    ...(content !== undefined && {
      hashes: [{ alg: 'SHA-512', content: Buffer.from(content, 'base64').toString('hex') }],
    }),
  }
}
