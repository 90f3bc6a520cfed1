import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { test } from 'tap'
import { fakePrograms } from '../testing/fake-programs.mjs'
import { findKubeBinaries } from './kube-binaries.mjs'

const silent = { say: () => {} }

/** A Go that notes what it is asked, and leaves the files that a real one would. */
function fakeGo(root, { install = 'touch "$GOBIN/${2##*/}"' } = {}) {
  const go = `
echo "$1 $GOFLAGS/$GOWORK $*" >> ${root}/log
case "$1" in
version) echo "go version go1.26.8 linux/amd64" ;;
build) while [ "$1" != -o ]; do shift; done; touch "$2" ;;
install) for last; do :; done; set -- install "$last"; ${install} ;;
esac`
  const bin = fakePrograms(join(root, 'go-bin'), { go })
  return { PATH: `${bin}:/usr/bin:/bin`, XDG_CACHE_HOME: join(root, 'cache') }
}

function logOf(root) {
  const lines = readFileSync(join(root, 'log'), 'utf8').trim().split('\n')
  return lines.filter((line) => !line.startsWith('version'))
}

await test('a folder that is named is taken, or refused', async (t) => {
  const root = t.testdir({ full: { etcd: '', 'kube-apiserver': '' }, half: { etcd: '' } })
  const named = (name, folder) =>
    findKubeBinaries({ env: { [name]: join(root, folder) }, ...silent })
  for (const name of ['TUTTI_KUBE_BIN', 'KUBEBUILDER_ASSETS']) {
    t.same(await named(name, 'full'), { TUTTI_KUBE_BIN: join(root, 'full') })
    const refusal = new RegExp(`${name} is .*half, which lacks kube-apiserver; want`)
    await t.rejects(named(name, 'half'), { message: refusal })
    await t.rejects(named(name, 'absent'), { message: /lacks etcd and kube-apiserver/ })
  }
})

await test('without one they are built once, however many ask', async (t) => {
  const root = t.testdir()
  const env = fakeGo(root)
  const ask = () => findKubeBinaries({ env, ...silent })
  const [first, second] = await Promise.all([ask(), ask()])
  t.same(first, second)
  t.same(await ask(), first)
  const folder = first.TUTTI_KUBE_BIN
  t.match(basename(folder), /^kubernetes-[0-9a-f]{16}-/)
  for (const program of ['etcd', 'kube-apiserver', 'kubectl', 'helm@v3.22.0']) {
    t.ok(existsSync(join(folder, program)), program)
  }
  const log = logOf(root)
  t.same(
    log.map((line) => line.split(' ')[0]),
    ['build', 'install'],
  )
  // Nothing of Go's around it changes the build.
  for (const line of log) t.match(line, /^\w+ \/off /)
  t.same(readdirSync(join(env.XDG_CACHE_HOME, 'tutti')), [basename(folder)], 'nothing is left over')
})

await test('what is missing is reported, for the tests that are skipped', async (t) => {
  const root = t.testdir()
  const env = { PATH: '', XDG_CACHE_HOME: join(root, 'cache') }
  const { TUTTI_KUBE_BIN: folder, TUTTI_KUBE_MISSING: reason } = await findKubeBinaries({
    env,
    ...silent,
  })
  t.equal(folder, undefined)
  t.match(reason, /Go 1\.26 or newer .* there is no Go in PATH; or set KUBEBUILDER_ASSETS/)
})

await test('a build that fails says so, and leaves nothing', async (t) => {
  const root = t.testdir()
  const env = fakeGo(root, { install: 'echo no route >&2; exit 1' })
  const said = []
  const found = await findKubeBinaries({ env, say: (line) => said.push(line) })
  t.match(found.TUTTI_KUBE_MISSING, /The build of .*helm@v.* failed with exit code 1/)
  t.match(said.join('\n'), /no route/)
  t.same(readdirSync(join(env.XDG_CACHE_HOME, 'tutti')), [])
})
