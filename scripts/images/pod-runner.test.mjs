import { test } from 'tap'
import { descendantsOf, dockerCommand, startPod, unshareCommand, waitFor } from './pod-runner.mjs'

const command = {
  command: ['tutti-step', '--help'],
  env: { A: '1' },
  volumes: [{ source: '/m', target: '/models' }],
}

await test('docker runs a command as a pod does', async (t) => {
  const line = dockerCommand(command, { image: 'tutti/step:1', user: '5:6' }).join(' ')
  t.match(
    line,
    '--read-only --tmpfs /tmp --user 5:6 --cap-drop ALL --security-opt no-new-privileges',
  )
  t.match(line, '--volume /m:/models:ro --env A=1 --entrypoint tutti-step tutti/step:1 --help')
})

await test('so do namespaces alone', async (t) => {
  const line = unshareCommand(command, { root: '/root-of', user: '5:6', env: ['PATH=/bin'] }).join(
    ' ',
  )
  t.match(line, /^unshare --mount --pid --fork \S+run-in-root\.sh \/root-of 5 6 \/m:\/models -- /)
  t.match(line, /-- PATH=\/bin A=1 tutti-step --help$/)
})

await test('what a pod writes and how it ends is known', async (t) => {
  const pod = startPod([
    process.execPath,
    '-e',
    'console.log(1); console.error(2); process.exit(3)',
  ])
  t.equal(await pod.ended, 3)
  t.same(pod.written().trim().split('\n').toSorted(), ['1', '2'])
  t.match(await startPod(['/nonexistent/program']).ended, /ENOENT/)
})

const skip = process.platform === 'linux' ? false : 'there is no /proc'
await test('process 1 is the first child, and gets the signal', { skip }, async (t) => {
  const inner =
    'process.on("SIGTERM", () => process.exit(0)); console.log("up"); setInterval(() => {}, 1e3)'
  const outer = `
    const { spawnSync } = require('node:child_process')
    process.exitCode = spawnSync(process.execPath, ['-e', ${JSON.stringify(inner)}], { stdio: 'inherit' }).status`
  const pod = startPod([process.execPath, '-e', outer])
  t.teardown(() => pod.close())
  await waitFor('the inner process is up', () => pod.written().includes('up'))
  t.match(
    descendantsOf(process.pid).find(({ pid }) => pid === pod.processOne()),
    {
      program: process.execPath,
      isZombie: false,
    },
  )
  pod.terminate()
  t.equal(await pod.ended, 0)
  t.equal(pod.processOne(), undefined)
})

await test('what does not come true is an error', async (t) => {
  await t.rejects(
    waitFor('it rains', () => false, 1),
    { message: 'waited 0.001 s: it rains' },
  )
})
