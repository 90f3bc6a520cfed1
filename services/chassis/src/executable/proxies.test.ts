import { once } from 'node:events'
import { createServer, get } from 'node:http'
import t, { type Test } from 'tap'
import { obeyProxies } from './proxies.ts'

/** Asks for addresses by way of a proxy. @returns the addresses that the proxy was asked for. */
async function ask(t: Test, noProxy: string, urls: readonly string[]): Promise<readonly string[]> {
  const asked: string[] = []
  const proxy = createServer((request, response) => {
    asked.push(request.url ?? '')
    response.end()
  })
  t.teardown(() => proxy.close())
  await once(proxy.listen(0, '127.0.0.1'), 'listening')
  const address = proxy.address()
  const port = typeof address === 'object' ? address?.port : 0
  // Without a scheme, as curl takes it, and in lower case, which counts.
  const end = obeyProxies({
    http_proxy: `127.0.0.1:${port}`,
    HTTP_PROXY: 'http://127.0.0.1:1',
    NO_PROXY: noProxy,
  })
  try {
    for (const url of urls) {
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      await new Promise<void>((resolve) => {
        const request = get(url, { agent: undefined, timeout: 1000 }, (response) => {
          response.resume()
          response.once('end', () => resolve())
        })
        // Nobody is there without the proxy.
        request.once('timeout', () => request.destroy())
        request.once('error', () => resolve())
      })
    }
  } finally {
    end()
  }
  return asked
}

await t.test('names and addresses go by the proxy, but for those of NO_PROXY', async (t) => {
  const urls = [
    'http://models.test/a',
    'http://models.svc.test/a',
    'http://192.0.2.1:1/a',
    'http://127.77.0.1:1/a',
  ]
  t.same(await ask(t, '.svc.test,127.77.0.0/16', urls), [urls[0], urls[2]])
})

await t.test('this machine and the metadata of a cloud are never asked by a proxy', async (t) => {
  t.same(await ask(t, '', ['http://localhost:1/', 'http://127.0.0.1:1/', 'http://[::1]:1/']), [])
  t.same(await ask(t, '', ['http://169.254.170.2/', 'http://169.254.169.254/latest']), [])
})

await t.test('what is no proxy is refused, without its text', async (t) => {
  for (const HTTPS_PROXY of ['socks5://secret@a:1', 'http://', 'http://a b']) {
    const error = {
      reason: 'SETTING_INVALID',
      message: /^HTTPS_PROXY: it is no address of a proxy/,
    }
    const run = () => obeyProxies({ HTTPS_PROXY })
    t.throws(run, error)
    t.throws(run, { message: /^(?!.*secret)/ })
  }
})
