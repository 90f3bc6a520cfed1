// needs: nats, netns
import { networkInterfaces } from 'node:os'
import { startNatsServer, withoutNatsServer } from '@tutti/chassis/testing'
import t, { type Test } from 'tap'
import { command, inOwnNamespaces } from './faults/own-namespaces.ts'
import { runTutti, type Serving, startTutti } from './serving.ts'
import { copyModels } from './temp-repository.ts'

const HOST = '[::1]'
const ANY_PORT = ['grpc', 'http', 'metrics'].map((name) => `--${name}-port=0`)
const ROUTES = /Listening for route connections on .*:\d+$/
/** Sixteen ones. */
const INPUT = `--input=X=${JSON.stringify(Array(16).fill(1))}`
const AT_LOOPBACK = ['grpc', 'http', 'metrics'].map((name) => `--${name}-address=::1`)

function withoutIpv6(): string | false {
  const addresses = Object.values(networkInterfaces()).flatMap((list) => list ?? [])
  return addresses.some(({ address }) => address === '::1') ? false : 'the machine has no ::1'
}

/** Starts a program, calls it as clients do, and reads its probes and metrics. */
async function check(t: Test, args: readonly string[]): Promise<Serving> {
  const { serving } = await startTutti([...args, ...ANY_PORT])
  t.teardown(() => serving.process.stop('SIGKILL'))
  const { grpcPort, httpPort, metricsPort } = serving
  const [name = ''] = args
  for (const path of ['livez', 'readyz', 'metrics']) {
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    const { status } = await fetch(`http://${HOST}:${metricsPort}/${path}`)
    t.equal(status, 200, `${name}: ${path}`)
  }
  const model = name === 'step' ? 'add_one_batch' : 'ens_chain'
  for (const url of [`grpc://${HOST}:${grpcPort}`, `http://${HOST}:${httpPort}`]) {
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    const answer = await runTutti(['infer', model, `--url=${url}`, INPUT])
    t.equal(answer.code, 0, `${name}: ${url} ${answer.err}`)
  }
  return serving
}

/** Runs all programs at addresses of IPv6. @param flags - where they listen, if not at all addresses. */
async function checkAll(t: Test, flags: readonly string[]): Promise<void> {
  const models = await copyModels(t, ['add_one_batch', 'ens_chain'])
  const repository = `--model-repository=${models}`

  await t.test('in one process', async (t) => {
    const serving = await check(t, ['serve', repository, ...flags])
    const top = await runTutti(['top', `--url=http://${HOST}:${serving.metricsPort}`, '--once'])
    t.match(top, { code: 0, out: /add_one_batch/ }, top.err)
    const taken = await runTutti([
      'serve',
      repository,
      `--http-address=::1`,
      `--http-port=${serving.httpPort}`,
    ])
    t.match(taken, { code: 1, out: `cannot listen on ${HOST}:${serving.httpPort}` })
  })

  await t.test(
    'over two NATS servers with a route, and directly',
    { skip: withoutNatsServer() },
    async (t) => {
      const route = `cluster { name: six, listen: "${HOST}:-1" }`
      const first = await startNatsServer({ address: '::1', config: route })
      t.teardown(() => first.stop())
      const [clusterPort] = /\d+$/.exec(await first.waitForLine((line) => ROUTES.test(line))) ?? []
      const routes = `cluster { name: six, listen: "${HOST}:-1", routes: ["nats://${HOST}:${clusterPort}"] }`
      const second = await startNatsServer({ address: '::1', config: routes })
      t.teardown(() => second.stop())
      for (const direct of [[], ['--direct=tls']]) {
        const place = direct.length > 0 ? [`--direct-address=${HOST}:0`] : []
        const on = (url: string) => [`--nats=${url}`, ...flags, ...direct]
        // oxlint-disable-next-line no-await-in-loop -- the second pair of processes comes after the first
        const step = await check(t, ['step', repository, ...on(first.url), ...place])
        // oxlint-disable-next-line no-await-in-loop -- as above
        const router = await check(t, ['router', repository, ...on(second.url)])
        // oxlint-disable-next-line no-await-in-loop -- as above
        await Promise.all([step.process.stop(), router.process.stop()])
      }
    },
  )
}

// In the namespaces below this file runs once more, before their loopback is up.
if (process.env['TUTTI_IS_INSIDE'] === undefined) {
  await t.test('at ::1', { skip: withoutIpv6() }, (t) => checkAll(t, AT_LOOPBACK))
}

await inOwnNamespaces(t, import.meta.url, async () => {
  await command('ip', 'link', 'set', 'lo', 'up')
  await command('ip', 'address', 'delete', '127.0.0.1/8', 'dev', 'lo')
  await t.test('where there is no IPv4, at the default addresses', (t) => checkAll(t, []))
})
