import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { openCluster } from './cluster.mjs'
import { Phases, Shown } from './report.mjs'

const E2E = fileURLToPath(new URL('../../scripts/e2e.mjs', import.meta.url))

await test('a cluster that KUBECONFIG names is neither started nor ended', async (t) => {
  const said = []
  const env = { KUBECONFIG: '/somewhere/config', TUTTI_CLUSTER_STATE: t.testdir() }
  const cluster = openCluster({ env, say: (line) => said.push(line) })
  t.equal(cluster.whyNot(), undefined)
  await cluster.prepare()
  await cluster.up()
  await cluster.down()
  t.match(said, [/nothing is started/, /it stays as it is/])
  await cluster.loadImages([])
  await t.rejects(cluster.loadImages(['/x.tar']), { message: /kind load image-archive \/x\.tar/ })
})

await test('where there can be no node, it is said, and that the tests are skipped', async (t) => {
  // Without programs of any kind.
  const env = { PATH: '', HOME: t.testdir(), TUTTI_CLUSTER_STATE: t.testdir() }
  const { status, stdout } = spawnSync(process.execPath, [E2E], { env, encoding: 'utf8' })
  t.match(stdout, /^skipped: the tests on a cluster \(.+\)\n0 passed, 0 failed, 1 skipped\n$/)
  t.equal(status, 0)
})

await test('phases are reported with their time and memory, those that fail too', async (t) => {
  let bytes = 0
  const phases = new Phases(() => bytes)
  await phases.run('up', () => {
    bytes = 300 * 1024 * 1024
  })
  await t.rejects(
    phases.run('tests', async () => {
      throw new Error('no')
    }),
  )
  const lines = phases
    .render()
    .replaceAll(/\d+\.\d s/g, '# s')
    .split('\n')
  t.same(
    lines.map((line) => line.replaceAll(/ {2,}/g, ' | ')),
    [
      'phase | time | memory of the node',
      'up | # s | 300 MiB',
      'tests | # s | 300 MiB',
      'all | # s',
    ],
  )
})

await test('what was shown is read from the second level of tap', async (t) => {
  const shown = new Shown()
  for (const line of [
    'TAP version 14',
    '        # Subtest: pods run',
    '            ok 1 - should be equal',
    '        ok 1 - pods run # time=1250.4ms',
    '        not ok 2 - names resolve # time=20ms',
    '    ok 1 - the cluster # time=1300ms',
    '    ok 2 - Tutti # SKIP no images',
  ]) {
    shown.take(line)
  }
  t.equal(
    shown.render(),
    [
      '         what was shown     time',
      'ok       pods run          1.3 s',
      'FAILED   names resolve     0.0 s',
      'skipped  Tutti: no images',
    ].join('\n'),
  )
})
