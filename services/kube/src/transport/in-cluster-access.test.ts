import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createManualClock } from '@tutti/chassis/testing'
import t from 'tap'
import { inClusterAccess } from './in-cluster-access.ts'

const SERVER = { KUBERNETES_SERVICE_HOST: '10.96.0.1', KUBERNETES_SERVICE_PORT: '443' }

await t.test('the server is that of the environment', async (t) => {
  t.equal(inClusterAccess(SERVER).server.href, 'https://10.96.0.1/')
  const six = { KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '6443' }
  t.equal(inClusterAccess(six).server.href, 'https://[fd00::1]:6443/')
  t.throws(() => inClusterAccess({}), /KUBERNETES_SERVICE_HOST is "" and .* is ""; want both/)
  t.throws(() => inClusterAccess({ KUBERNETES_SERVICE_HOST: 'x' }), /is "x" and/)
})

await t.test('token and authority are read anew in time, and when they are refused', async (t) => {
  const folder = t.testdir({ token: 'one\n', 'ca.crt': 'CA' })
  const clock = createManualClock()
  const access = inClusterAccess({ ...SERVER, TUTTI_SERVICE_ACCOUNT_DIR: folder }, clock)
  const one = { authorization: 'Bearer one', ca: 'CA' }
  t.same(await access.credentials(), one)
  writeFileSync(join(folder, 'token'), 'two')
  writeFileSync(join(folder, 'ca.crt'), 'CA2')
  clock.advance(9999)
  t.same(await access.credentials(), one, 'not read for every request')
  clock.advance(1)
  t.same(await access.credentials(), { authorization: 'Bearer two', ca: 'CA2' })
  writeFileSync(join(folder, 'token'), 'three')
  access.refresh()
  t.match(await access.credentials(), { authorization: 'Bearer three' })
})

await t.test(
  'files that cannot be read: the last ones count, or the error names them',
  async (t) => {
    const folder = t.testdir({ token: 'one', 'ca.crt': 'CA' })
    const access = inClusterAccess({ ...SERVER, TUTTI_SERVICE_ACCOUNT_DIR: folder })
    await access.credentials()
    writeFileSync(join(folder, 'token'), '')
    access.refresh()
    t.match(await access.credentials(), { authorization: 'Bearer one' })
    rmSync(join(folder, 'token'))
    access.refresh()
    t.match(await access.credentials(), { authorization: 'Bearer one' })
    const fresh = inClusterAccess({ ...SERVER, TUTTI_SERVICE_ACCOUNT_DIR: folder })
    await t.rejects(fresh.credentials(), { code: 'ENOENT' })
    writeFileSync(join(folder, 'token'), ' \n')
    await t.rejects(fresh.credentials(), /token is empty, want a token/)
  },
)
