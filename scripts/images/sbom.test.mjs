import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { debianPackages, packagesOf, toSpdx } from './sbom.mjs'

const STATUS = `Package: libc6
Status: install ok installed
Architecture: amd64
Version: 2.36-9+deb12u14

Package: gone
Status: deinstall ok config-files
Architecture: amd64
Version: 1:1.0
`

const manifest = (name, license) => ({
  'package.json': JSON.stringify({ name, version: '1.0.0', ...(license && { license }) }),
})

await test('everything that is installed is in the list, nested packages and pip’s too', async (t) => {
  const root = t.testdir({
    etc: { 'os-release': 'NAME="Debian"\nID=debian\n' },
    var: { lib: { dpkg: { status: STATUS } } },
    opt: {
      python: {
        lib: {
          'python3.11': {
            'site-packages': {
              'Some_Thing-2.0.dist-info': {
                METADATA:
                  'Metadata-Version: 2.1\nName: Some_Thing\nVersion: 2.0\nLicense-Expression: MIT\n\nName: not this\n',
              },
            },
          },
        },
      },
    },
    app: {
      node_modules: {
        one: { ...manifest('one', 'MIT'), node_modules: { two: manifest('two', { type: 'BSD' }) } },
        '@of': { three: manifest('@of/three') },
      },
    },
  })
  mkdirSync(join(root, 'app/node_modules/.bin'))
  const purls = packagesOf(root, join(root, 'app')).map(({ purl }) => purl)
  t.same(purls.slice(1), [
    'pkg:deb/debian/libc6@2.36-9%2Bdeb12u14?arch=amd64',
    'pkg:npm/%40of/three@1.0.0',
    'pkg:npm/one@1.0.0',
    'pkg:npm/two@1.0.0',
    'pkg:pypi/some-thing@2.0',
  ])
  t.match(purls[0], /^pkg:generic\/node@/)
})

await test('what dpkg has removed is not there', async (t) => {
  t.same(
    debianPackages(STATUS, 'ubuntu').map(({ purl }) => purl),
    ['pkg:deb/ubuntu/libc6@2.36-9%2Bdeb12u14?arch=amd64'],
  )
})

await test('the document names each package once, and is the same for the same packages', async (t) => {
  const packages = [
    { name: 'b', version: '1', purl: 'pkg:npm/b@1', license: 'SEE LICENSE IN x' },
    { name: '@of/a', version: '1', purl: 'pkg:npm/%40of/a@1', license: '(MIT OR Apache-2.0)' },
  ]
  const about = { image: 'tutti/step', version: '0.1.0', created: new Date(0) }
  const document = toSpdx({ ...about, packages: [...packages, ...packages] })
  t.same(document, toSpdx({ ...about, packages: packages.toReversed() }))
  t.match(document, {
    spdxVersion: 'SPDX-2.3',
    name: 'tutti/step:0.1.0',
    creationInfo: { created: '1970-01-01T00:00:00Z' },
  })
  t.same(
    document.packages.map(({ SPDXID, licenseDeclared }) => [SPDXID, licenseDeclared]),
    [
      ['SPDXRef-pkg-oci-step-0.1.0', 'Apache-2.0'],
      ['SPDXRef-pkg-npm-40of-a-1', '(MIT OR Apache-2.0)'],
      ['SPDXRef-pkg-npm-b-1', 'NOASSERTION'],
    ],
  )
  t.same(
    document.relationships.map(({ relationshipType }) => relationshipType),
    ['DESCRIBES', 'CONTAINS', 'CONTAINS'],
  )
})
