import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { fakePrograms } from '../testing/fake-programs.mjs'
import { findBucketServers } from './bucket-servers.mjs'

/** A Go and an npm that note what they are asked, and leave the files that real ones would. */
function fakeEnvironment(root, { npm = 'true' } = {}) {
  const bin = fakePrograms(join(root, 'bin'), {
    go: `
echo "go $*" >> ${root}/log
if [ "$1" = version ]; then echo "go version go1.26.8 linux/amd64"; else touch "$GOBIN/fake-gcs-server"; fi`,
    npm: `
case "$*" in *--version*) echo 11; exit ;; esac
echo "npm $*" >> ${root}/log
${npm} || { echo 'no network' >&2; exit 1; }
while [ "$1" != --prefix ]; do shift; done
mkdir -p "$2/node_modules/azurite/dist/src/blob" && touch "$2/node_modules/azurite/dist/src/blob/main.js"`,
  })
  return { PATH: `${bin}:/usr/bin:/bin`, XDG_CACHE_HOME: join(root, 'cache') }
}

await test('servers that are named are taken', async (t) => {
  const named = { TUTTI_FAKE_GCS: '/a', TUTTI_AZURITE: '/b' }
  t.same(await findBucketServers({ env: named, say: () => {} }), named)
})

await test('without one they are built once, of one version, however many ask', async (t) => {
  const root = t.testdir()
  const env = fakeEnvironment(root)
  const ask = () => findBucketServers({ env, say: () => {} })
  const [first, second] = await Promise.all([ask(), ask()])
  t.same(first, second)
  t.same(await ask(), first)
  t.same(Object.keys(first).toSorted(), ['TUTTI_AZURITE', 'TUTTI_FAKE_GCS'])
  for (const path of Object.values(first)) t.ok(existsSync(path), path)
  const log = readFileSync(join(root, 'log'), 'utf8').trim().split('\n')
  const built = log.filter((line) => !line.startsWith('go version'))
  t.equal(built.length, 2)
  t.match(built.join('\n'), /fake-gcs-server@v\d+\.\d+\.\d+/)
  t.match(built.join('\n'), /--before=\d{4}-\d\d-\d\d .* azurite@\d+\.\d+\.\d+/)
  t.equal(readdirSync(join(env.XDG_CACHE_HOME, 'tutti')).length, 2, 'nothing is left over')
})

await test('one that cannot be had is missing with its reason', async (t) => {
  const root = t.testdir()
  const env = fakeEnvironment(root, { npm: 'false' })
  const found = await findBucketServers({ env, say: () => {} })
  t.ok(existsSync(found.TUTTI_FAKE_GCS))
  t.match(found.TUTTI_AZURITE_MISSING, /./)
  t.equal(found.TUTTI_AZURITE, undefined)
})
