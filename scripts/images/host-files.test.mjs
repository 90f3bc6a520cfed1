import { readFileSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { test } from 'tap'
import { hostFiles } from './host-files.mjs'

const AUTHORITIES = '/etc/ssl/certs/ca-certificates.crt'

function filesOf(t, { env = {}, npm = {}, apt = '', files = [] }) {
  const ask = (command, args) => (command === 'npm' ? (npm[args.at(-1)] ?? 'undefined') : apt)
  const mounts = hostFiles(t.testdir(), { env, ask, exists: (path) => files.includes(path) })
  return Object.fromEntries(mounts.map(({ source, target }) => [target, source]))
}

await test('a machine without settings of its own has no files for a build', async (t) => {
  const npm = { registry: 'https://registry.npmjs.org/', cafile: 'null' }
  t.same(filesOf(t, { npm, apt: 'APT::Architecture "amd64";' }), {})
})

await test('authorities, a registry, a proxy and pip’s settings are files', async (t) => {
  const files = filesOf(t, {
    env: { NODE_EXTRA_CA_CERTS: '/gone.pem', SSL_CERT_FILE: '/ca.pem' },
    npm: { registry: 'https://npm.example/' },
    apt: 'Acquire::Languages "none";\nAcquire::http::Proxy "http://proxy.example:3128";',
    files: ['/ca.pem', '/etc/pip.conf'],
  })
  t.equal(files[AUTHORITIES], '/ca.pem')
  t.equal(files['/etc/pip.conf'], '/etc/pip.conf')
  const npmrc = readFileSync(files['/usr/local/etc/npmrc'], 'utf8')
  t.equal(npmrc, `cafile=${AUTHORITIES}\nregistry=https://npm.example/\n`)
  const apt = readFileSync(files['/etc/apt/apt.conf.d/99host'], 'utf8')
  t.equal(apt, 'Acquire::http::Proxy "http://proxy.example:3128";\n')
  t.equal(statSync(dirname(files['/usr/local/etc/npmrc'])).mode & 0o777, 0o700)
})
