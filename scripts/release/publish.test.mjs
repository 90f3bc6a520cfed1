import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { integrityOf, publishPackage } from './publish.mjs'

const version = '1.2.3-rc.1'
const HELLO =
  'sha512-m3HSJL1i83hdltRq0+o9czGb+8KJDKra4t/3JRlnPKcjI8PZm6XBHXx6zG4UuMXaDEZjR1wuXDre9G9zvN7AQw=='

/** An npm that has `published`, notes each `publish`, and fails if it has nothing. */
function fakeNpm(t, published) {
  const folder = t.testdir({ [`tutti-${version}.tgz`]: 'hello' })
  const command = join(folder, 'npm')
  const log = join(folder, 'log')
  writeFileSync(log, '')
  const view =
    published === undefined ? 'echo "npm error code E404"; exit 1' : `echo '"${published}"'`
  writeFileSync(
    command,
    `#!/bin/sh\nif [ "$1" = view ]; then ${view}; else echo "$@" >>"${log}"; fi\n`,
  )
  chmodSync(command, 0o755)
  const publish = () =>
    publishPackage({ version, out: folder, isDryRun: false }, { command, args: [] })
  return { publish, calls: () => readFileSync(log, 'utf8') }
}

await test('a package that npm lacks is published, a candidate as `next`', async (t) => {
  const npm = fakeNpm(t, undefined)
  await npm.publish()
  t.match(
    npm.calls(),
    /^publish \S+\/tutti-1\.2\.3-rc\.1\.tgz --access=public --tag=next --provenance\n$/,
  )
})

await test('a release can be run again: what npm has is not published twice', async (t) => {
  t.equal(integrityOf('hello'), HELLO)
  const npm = fakeNpm(t, HELLO)
  await npm.publish()
  t.equal(npm.calls(), '')
})

await test('another package of the version is refused', async (t) => {
  const npm = fakeNpm(t, 'sha512-AAAA')
  await t.rejects(npm.publish(), {
    message: /npm has another tutti 1\.2\.3-rc\.1: got sha512-AAAA, want sha512-m3HS/,
  })
  t.equal(npm.calls(), '')
})
