import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { inputsDigest } from '../../scripts/images/inputs.mjs'
import { withLock } from '../../scripts/setup/lock.mjs'
import { staleImages } from './built-images.mjs'
import { openCluster } from './cluster.mjs'
import { anotherTag, makeNatsImage, namesIn } from './images.mjs'

const MAIN = fileURLToPath(new URL('main.mjs', import.meta.url))
const E2E = fileURLToPath(new URL('e2e.mjs', import.meta.url))

await test('the lines for working by hand name the cluster, and the programs that there are', (t) => {
  const env = { XDG_CACHE_HOME: t.testdir(), TUTTI_CLUSTER_STATE: '/state' }
  const usage = (more = {}) => openCluster({ env: { ...env, ...more } }).usageByHand()
  const config = "export KUBECONFIG='/state/kubeconfig'"
  t.same(usage(), [config])
  t.same(usage({ TUTTI_KUBE_BIN: '/kube/bin' }), [config, `export PATH='/kube/bin':"$PATH"`])
  t.end()
})

await test('where there can be no node, the tests are reported as skipped, with the reason', async (t) => {
  // Without programs of any kind.
  const env = { PATH: '', HOME: t.testdir(), TUTTI_CLUSTER_STATE: t.testdir() }
  const { status, stdout } = spawnSync(process.execPath, [E2E], { env, encoding: 'utf8' })
  t.match(stdout, /^skipped: the tests on a cluster \(.+\)\n0 passed, 0 failed, 1 skipped\n$/)
  t.equal(status, 0)
})

await test('tests want a cluster that is up', async (t) => {
  const env = { TUTTI_CLUSTER_STATE: t.testdir(), XDG_CACHE_HOME: t.testdir({}) }
  await t.rejects(openCluster({ env }).testEnvironment(), {
    message: /^There is no cluster to test on: no node has been started/,
  })
})

await test('a start that waits for another can be stopped', async (t) => {
  const cache = t.testdir({ state: {} })
  const env = { XDG_CACHE_HOME: cache, TUTTI_CLUSTER_STATE: join(cache, 'state') }
  const stop = new AbortController()
  const say = () => stop.abort(new Error('own'))
  await withLock(join(cache, 'tutti', 'cluster.lock'), () =>
    t.rejects(openCluster({ env, say }).up({ signal: stop.signal }), { message: 'own' }),
  )
})

await test('programs that have to be built are named', async (t) => {
  const env = { XDG_CACHE_HOME: t.testdir(), TUTTI_CLUSTER_STATE: t.testdir({}) }
  const whyNot = (more = {}) => openCluster({ env: { ...env, ...more } }).whyNotAtOnce()
  t.match(whyNot(), /^not built yet: kubernetes, node, coredns, /)
  t.notMatch(whyNot({ TUTTI_KUBE_BIN: '/somewhere' }), 'kubernetes')
})

await test('verbs refuse what they would ignore', async (t) => {
  const env = { ...process.env, TUTTI_CLUSTER_STATE: t.testdir(), XDG_CACHE_HOME: t.testdir({}) }
  for (const [args, said] of [
    [['down', 'now'], /down takes no arguments; got now/],
    [['load-images'], /There are no images to load/],
    [['fly'], /Say what to do: build, up, down, load-images, test/],
  ]) {
    const { status, stderr } = spawnSync(process.execPath, [MAIN, ...args], {
      env,
      encoding: 'utf8',
    })
    t.match(stderr, said)
    t.equal(status, 1)
  }
})

await test('a file that is no archive of an image is refused', (t) => {
  const folder = t.testdir({ 'x.tar': 'x' })
  for (const name of ['x.tar', 'absent.tar']) {
    t.throws(() => namesIn(join(folder, name)), { message: /want an archive in the layout of OCI/ })
  }
  t.end()
})

await test('the image of NATS has the programs that there are', (t) => {
  const folder = t.testdir({ one: '1', other: '2', probe: '' })
  const env = { XDG_CACHE_HOME: folder }
  const imageOf = (name) =>
    readFileSync(makeNatsImage(join(folder, name), join(folder, 'probe'), env))
  const first = imageOf('one')
  t.notOk(imageOf('other').equals(first))
  t.ok(imageOf('one').equals(first))
  t.same(readdirSync(join(folder, 'tutti', 'cluster')), ['nats.tar'])
  t.end()
})

await test('images are built again if what they are built from is other than their notes say', (t) => {
  const root = fileURLToPath(new URL('../../', import.meta.url))
  const { version } = JSON.parse(readFileSync(`${root}package.json`, 'utf8'))
  const noteOf = (name, inputs) => `docker.io/tutti/${name}:${version} ${inputs}\n`
  const current = inputsDigest(root)
  const images = {
    'operator.tar': '',
    'operator.tar.inputs': noteOf('operator', current),
    'router.tar': '',
    'router.tar.inputs': noteOf('router', 'sha256:other'),
    'step.tar': '',
    'step-python.tar.inputs': noteOf('step-python', current),
  }
  const env = { XDG_CACHE_HOME: t.testdir({ tutti: { images } }) }
  t.same(staleImages(env), ['router', 'step', 'step-python', 'samples'])
  // One for another platform has the same name.
  const note = `docker.io/tutti/operator:${version} ${current} linux/arm64\n`
  writeFileSync(join(env.XDG_CACHE_HOME, 'tutti', 'images', 'operator.tar.inputs'), note)
  t.match(staleImages(env), ['operator'])
  t.end()
})

await test('images of Tutti get a second tag, those of others do not', (t) => {
  t.equal(anotherTag('docker.io/tutti/step:0.1.0'), 'docker.io/tutti/step:next')
  for (const name of ['localhost/nats:test', 'docker.io/tutti/step:earlier']) {
    t.equal(anotherTag(name), undefined)
  }
  t.end()
})
