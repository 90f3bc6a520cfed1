import { createServer } from 'node:net'
import { parseFlags } from '@tutti/chassis'
import { freePort } from '@tutti/chassis/testing'
import { listenOn } from '@tutti/serving'
import t from 'tap'
import { checkPorts } from './check-ports.ts'
import { SERVER_FLAGS } from './server-flags.ts'

const NAMES = ['http', 'grpc', 'metrics', 'console'] as const
const LOCAL = NAMES.slice(0, 3).flatMap((name) => [`--${name}-address=127.0.0.1`])

/** Checks the ports of some listeners; those of the others are any free ones. */
function check(ports: Partial<Record<(typeof NAMES)[number], number>>, ...more: string[]) {
  const argv = NAMES.slice(0, 3).map((name) => `--${name}-port=${ports[name] ?? 0}`)
  const { values } = parseFlags(SERVER_FLAGS, [...LOCAL, ...argv, ...more])
  return checkPorts(values, { address: '127.0.0.1', port: ports.console })
}

await t.test('a port that is taken is told by its flag, and free ones stay free', async (t) => {
  const server = createServer()
  t.teardown(() => server.close())
  const port = await listenOn(server, { address: '127.0.0.1', port: 0, onError: () => {} })
  for (const name of NAMES) {
    await t.rejects(check({ [name]: port }), {
      reason: 'SETTING_INVALID',
      message: new RegExp(
        `^--${name}-port: cannot listen on 127.0.0.1:${port}: EADDRINUSE, .*: end that program, or choose another`,
      ),
    })
  }
  const free = await freePort()
  await t.rejects(check({ http: free, grpc: free }), { message: /^--grpc-port: .*another flag/ })
  await check({ http: free }, '--metrics-address=192.0.2.1')
  await t.rejects(check({ http: free, metrics: free }, '--metrics-address=192.0.2.1'), {
    message: /^--metrics-port: .* EADDRNOTAVAIL, .*choose another address/,
  })
  await check({ http: port, grpc: free }, '--allow-http=false')
  await check({ http: free })
})
