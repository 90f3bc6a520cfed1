import { once } from 'node:events'
import { copyFile, readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, connect } from 'node:net'
import { join } from 'node:path'
import { createTestCertificates } from '@tutti/chassis/testing'
import t, { type Test } from 'tap'
import { ROOT, runProgram } from './serving.ts'

const ARCHIVE = join(ROOT, 'charts/tutti/files/test/add-one.tar')
/** A name that the proxy alone knows. */
const HOST = 'models.test'

/** Serves the archive over TLS, and a proxy that leads to that server whatever it is asked for. */
async function startServers(t: Test, folder: string) {
  const tls = await createTestCertificates(folder, [`DNS:${HOST}`])
  const bytes = await readFile(ARCHIVE)
  const options = { key: await readFile(tls.keyFile), cert: await readFile(tls.certFile) }
  const server = createTlsServer(options, (_, response) => response.end(bytes))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const asked: string[] = []
  const proxy = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`)
    response.end(bytes)
  })
  proxy.on('connect', (request, socket) => {
    asked.push(`CONNECT ${request.url}`)
    const beyond = connect(port, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n')
      socket.pipe(beyond).pipe(socket)
    })
    for (const end of [socket, beyond]) end.on('error', () => end.destroy())
  })
  await once(proxy.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => {
    for (const one of [server, proxy]) {
      one.close()
      one.closeAllConnections()
    }
  })
  return {
    ca: tls.caFile,
    asked,
    proxy: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
  }
}

await t.test('models are fetched by the proxies of the environment', async (t) => {
  const folder = t.testdir({ secret: {} })
  const { ca, asked, proxy } = await startServers(t, folder)
  const secret = join(folder, 'secret')
  await copyFile(ca, join(secret, 'ca.crt'))
  const fetchModel = (to: string, uri: string, env: NodeJS.ProcessEnv) => {
    const program = join(ROOT, 'services/step/dist/main.js')
    const args = [
      `--uri=${uri}`,
      `--to=${join(folder, to)}`,
      `--secret-dir=${secret}`,
      '--attempts=1',
    ]
    return runProgram(process.execPath, [program, 'fetch', ...args], { env })
  }
  const secure = await fetchModel('one', `https://${HOST}/add-one.tar`, { HTTPS_PROXY: proxy })
  t.equal(secure.code, 0, secure.err)
  t.same(asked.splice(0), [`CONNECT ${HOST}:443`])
  const plain = await fetchModel('two', `http://${HOST}/add-one.tar`, { http_proxy: proxy })
  t.equal(plain.code, 0, plain.err)
  t.same(asked.splice(0), [`GET http://${HOST}/add-one.tar`])
  const none = { HTTPS_PROXY: proxy, NO_PROXY: '.test' }
  const alone = await fetchModel('three', `https://${HOST}/add-one.tar`, none)
  t.match(alone, { code: 12, err: /models\.test/ })
  t.same(asked, [], 'NO_PROXY')
})
