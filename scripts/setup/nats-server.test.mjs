import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { fakePrograms } from '../testing/fake-programs.mjs'
import { SetupFailure } from './failure.mjs'
import { ensureNatsServer } from './nats-server.mjs'

const server = (version) => `echo "nats-server: v${version}"`
/** A Go whose build leaves a program, and a line in a log that says so. */
const go = (version, log) => `
  if [ "$1" = version ]; then echo "go version go${version} linux/amd64"; exit 0; fi
  echo "$GOBIN $*" >> ${log}
  printf '#!/bin/sh\\n${server('2.15.2')}\\n' > "$GOBIN/nats-server"
  /bin/chmod +x "$GOBIN/nats-server"`

function environment(root, path) {
  return { PATH: path, XDG_CACHE_HOME: join(root, 'cache') }
}

const silent = { say: () => {} }

await test('the one that is named is taken, or refused', async (t) => {
  const folder = fakePrograms(t.testdir(), {
    good: server('2.16.0'),
    old: server('2.9.10'),
    other: 'echo x',
  })
  const named = (name) =>
    ensureNatsServer({ env: { TUTTI_NATS_SERVER: join(folder, name) }, ...silent })
  t.equal(await named('good'), join(folder, 'good'))
  await t.rejects(named('old'), { message: /old, which is 2\.9\.10; want nats-server 2\.15/ })
  await t.rejects(named('other'), { message: /which is no nats-server/ })
  await t.rejects(named('absent'), { message: /which is no nats-server/ })
})

await test('the first of PATH that is new enough is taken', async (t) => {
  const root = t.testdir()
  const old = fakePrograms(join(root, 'old'), { 'nats-server': server('2.14.9') })
  const bin = fakePrograms(join(root, 'new'), { 'nats-server': server('2.15.0-beta.1') })
  const env = environment(root, `/nonexistent::${old}:${bin}`)
  t.equal(await ensureNatsServer({ env, ...silent }), join(bin, 'nats-server'))
})

await test('without one it is built once, however many ask', async (t) => {
  const root = t.testdir()
  const log = join(root, 'log')
  const env = environment(root, fakePrograms(join(root, 'bin'), { go: go('1.26.8', log) }))
  const ask = () => ensureNatsServer({ env, ...silent })
  const [path, other] = await Promise.all([ask(), ask()])
  t.equal(path, other)
  t.equal(await ask(), path)
  t.match(path, /cache.tutti.nats-server-2\.15\.2-[^/]+.nats-server$/)
  t.ok(existsSync(path))
  const builds = readFileSync(log, 'utf8').trim().split('\n')
  t.equal(builds.length, 1)
  t.match(builds[0], /install -trimpath github\.com\/nats-io\/nats-server\/v2@v2\.15\.2$/)
  t.equal(readdirSync(join(env.XDG_CACHE_HOME, 'tutti')).length, 1, 'nothing is left over')
})

await test('what is missing is reported, and how to get it', async (t) => {
  const root = t.testdir()
  const log = join(root, 'log')
  const cases = [
    [{}, /there is none in PATH[^]*there is no Go in PATH[^]*https:\/\/go\.dev\/dl/],
    [{ go: go('1.22.4', log) }, /Go 1\.26 or newer; the Go in PATH is 1\.22\.4/],
    [{ go: 'exit 1' }, /the Go in PATH is broken/],
    [{ 'nats-server': server('2.9.10') }, /the one in PATH is 2\.9\.10/],
  ]
  for (const [i, [scripts, message]] of cases.entries()) {
    const env = environment(root, fakePrograms(join(root, `bin-${i}`), scripts))
    const failure = await ensureNatsServer({ env, ...silent }).then(
      () => undefined,
      (error) => error,
    )
    t.ok(failure instanceof SetupFailure)
    t.match(failure?.message, message)
  }
})

await test('a build that fails says what Go said, and leaves nothing', async (t) => {
  const root = t.testdir()
  const script =
    'if [ "$1" = version ]; then echo "go version go1.27.0"; exit 0; fi; echo no route >&2; exit 1'
  const env = environment(root, fakePrograms(join(root, 'bin'), { go: script }))
  await t.rejects(ensureNatsServer({ env, ...silent }), {
    message: /no route[^]*The build of nats-server failed with exit code 1/,
  })
  t.same(readdirSync(join(env.XDG_CACHE_HOME, 'tutti')), [])
})
