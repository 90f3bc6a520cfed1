import t from 'tap'
import { renderLicences } from './licences.mjs'

const PACKAGES = {
  operator: { dependencies: { '@tutti/errors': '*', one: '1' }, devDependencies: { tool: '1' } },
  'services/router': { dependencies: { one: '1' } },
  'services/step': { dependencies: { two: '2' } },
  'services/errors': { dependencies: { two: '2' } },
  'node_modules/@tutti/errors': { resolved: 'services/errors', link: true },
  'node_modules/one': { version: '1.0.0', license: 'MIT', dependencies: { two: '1' } },
  'node_modules/one/node_modules/two': { version: '1.0.0', license: 'ISC' },
  'node_modules/two': { version: '2.0.0', license: 'MIT', optionalDependencies: { absent: '1' } },
  'node_modules/tool': { version: '1.0.0', license: 'GPL-3.0', dev: true },
}

await t.test('lists what each program installs, nested versions too, without tools of development', async (test) => {
  const rows = renderLicences(PACKAGES).trim().split('\n').slice(2)
  const cells = rows.map((row) => row.split('|').slice(1, -1).map((cell) => cell.trim()))
  test.same(cells, [
    ['one', '1.0.0', 'MIT', 'operator, router'],
    ['two', '1.0.0', 'ISC', 'operator, router'],
    ['two', '2.0.0', 'MIT', 'operator, step'],
  ])
})

await t.test('refuses a licence that does not allow what we do', async (test) => {
  const packages = { ...PACKAGES, 'node_modules/two': { version: '2.0.0', license: 'GPL-3.0' } }
  test.throws(() => renderLicences(packages), { message: /^two@2\.0\.0: licence GPL-3\.0, want one of / })
})

await t.test('allows the LGPL for the shared libraries of sharp alone, and several licences that are all allowed', async (test) => {
  const library = { version: '1.0.0', license: 'Apache-2.0 AND LGPL-3.0-or-later AND MIT' }
  const withLibrary = (name) => ({
    ...PACKAGES,
    'services/step': { dependencies: { [name]: '1' } },
    [`node_modules/${name}`]: library,
  })
  test.match(renderLicences(withLibrary('@img/sharp-libvips-linux-x64')), /AND LGPL-3.0-or-later AND MIT/)
  test.throws(() => renderLicences(withLibrary('other')), { message: /^other@1\.0\.0: licence / })
})
