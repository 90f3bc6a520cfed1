import { readFileSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { test } from 'tap'
import { hostSettings } from './host-settings.mjs'

const AUTHORITIES = '/etc/ssl/certs/ca-certificates.crt'

function settings(t, { env = {}, npm = {}, apt = '', files = [] }) {
  const ask = (command, args) => (command === 'npm' ? (npm[args.at(-1)] ?? 'undefined') : apt)
  const lent = hostSettings(t.testdir(), { env, ask, exists: (path) => files.includes(path) })
  return Object.fromEntries(lent.map(({ source, target }) => [target, source]))
}

await test('a machine without settings of its own lends nothing', async (t) => {
  const npm = { registry: 'https://registry.npmjs.org/', cafile: 'null' }
  t.same(settings(t, { npm, apt: 'APT::Architecture "amd64";' }), {})
})

await test('authorities, a registry, a proxy and pip’s settings are lent as files', async (t) => {
  const lent = settings(t, {
    env: { NODE_EXTRA_CA_CERTS: '/gone.pem', SSL_CERT_FILE: '/ca.pem' },
    npm: { registry: 'https://npm.example/' },
    apt: 'Acquire::Languages "none";\nAcquire::http::Proxy "http://proxy.example:3128";',
    files: ['/ca.pem', '/etc/pip.conf'],
  })
  t.equal(lent[AUTHORITIES], '/ca.pem')
  t.equal(lent['/etc/pip.conf'], '/etc/pip.conf')
  const npmrc = readFileSync(lent['/usr/local/etc/npmrc'], 'utf8')
  t.equal(npmrc, `cafile=${AUTHORITIES}\nregistry=https://npm.example/\n`)
  const apt = readFileSync(lent['/etc/apt/apt.conf.d/99lent'], 'utf8')
  t.equal(apt, 'Acquire::http::Proxy "http://proxy.example:3128";\n')
  t.equal(statSync(dirname(lent['/usr/local/etc/npmrc'])).mode & 0o777, 0o700)
})

await test('programs that are not there are not asked twice', async (t) => {
  const lent = hostSettings(t.testdir(), {
    env: { PATH: '/nowhere' },
    ask: () => '',
    exists: () => false,
  })
  t.same(lent, [])
})
