import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { networkInterfaces } from 'node:os'
import t from 'tap'
import { hostPort, listenAt } from './addresses.ts'

const hasIpv6 = Object.values(networkInterfaces()).some((list) =>
  list?.some(({ address }) => address === '::1'),
)

await t.test('hosts and ports are written as in a URL', async (t) => {
  t.equal(hostPort('::1', 8000), '[::1]:8000')
  t.equal(hostPort('[fd00::1]', '8000'), '[fd00::1]:8000')
  t.equal(hostPort('10.0.0.1', 1), '10.0.0.1:1')
  t.equal(hostPort('router', 1), 'router:1')
})

await t.test('an address of IPv6 may have brackets', async (t) => {
  t.same(listenAt('[::1]', 1), { host: '::1', port: 1 })
  t.same(listenAt('localhost', 1), { host: 'localhost', port: 1 })
})

await t.test('all addresses are those of both families', async (t) => {
  const server = createServer((socket) => socket.end())
  t.teardown(() => server.close())
  await once(server.listen(listenAt('::', 0)), 'listening')
  const bound = server.address()
  const port = typeof bound === 'object' ? (bound?.port ?? 0) : 0
  for (const host of hasIpv6 ? ['127.0.0.1', '::1'] : ['127.0.0.1']) {
    const socket = connect({ host, port })
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    await once(socket, 'connect')
    socket.destroy()
    t.pass(host)
  }
})
