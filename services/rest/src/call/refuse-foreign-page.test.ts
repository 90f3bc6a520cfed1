import { ServeError } from '@tutti/errors'
import { RecordingControl } from '@tutti/serving/testing'
import * as fc from 'fast-check'
import t from 'tap'
import { startRestServer } from '../rest-server.ts'
import { createRestBackend } from '../testing/rest-backend.ts'
import { refuseForeignPage } from './refuse-foreign-page.ts'

const LOCAL = ['localhost', '127.0.0.1', '[::1]', '192.168.1.7', 'tutti.localhost']

function refusalOf(headers: Record<string, string>): string | undefined {
  try {
    refuseForeignPage(headers)
    return undefined
  } catch (error) {
    return error instanceof ServeError ? `${error.code} ${error.message}` : String(error)
  }
}

await t.test('a form of another site loads no model', async (t) => {
  const backend = createRestBackend()
  const control = new RecordingControl()
  backend.control = control
  const server = await startRestServer({ backend, address: '127.0.0.1', port: 0 })
  t.teardown(() => server.close())
  const post = (action: string, headers: Record<string, string>) =>
    fetch(`http://127.0.0.1:${server.port}/v2/repository/models/m/${action}`, {
      method: 'POST',
      body: '{"parameters":{}}',
      headers: { 'content-type': 'text/plain', ...headers },
    })
  for (const action of ['load', 'unload']) {
    const foreign = await post(action, { origin: 'https://evil.example' })
    t.equal(foreign.status, 403, action)
    t.match(await foreign.json(), { error: /got origin 'https:\/\/evil\.example'/ })
  }
  t.same(control.loads, [])
  t.equal((await post('load', {})).status, 200, 'no browser')
  const own = { origin: `http://127.0.0.1:${server.port}`, 'sec-fetch-site': 'same-origin' }
  t.equal((await post('load', own)).status, 200, 'a page of this server')
  t.equal(control.loads.length, 2)
})

await t.test('clients that are no browsers call by any name', async (t) => {
  for (const host of [...LOCAL, 'tutti', 'tutti.models.svc:8000', 'a.example'])
    t.equal(refusalOf({ host }), undefined, host)
})

await t.test('a page calls its own server, by an address or as localhost', async (t) => {
  for (const name of LOCAL) {
    const host = `${name}:8000`
    t.equal(refusalOf({ host, origin: `http://${host}` }), undefined, name)
    t.equal(refusalOf({ host: name, origin: `http://${name}` }), undefined, 'the default port')
    t.match(refusalOf({ host, origin: `http://${name}:3000` }), /PERMISSION_DENIED/, 'other port')
    t.match(refusalOf({ host, 'sec-fetch-site': 'cross-site' }), /got sec-fetch-site/)
  }
  t.match(
    refusalOf({ host: 'rebound.example:8000', origin: 'http://rebound.example:8000' }),
    /want localhost or an IP address/,
  )
  t.match(refusalOf({ host: 'localhost:8000', origin: 'null' }), /got origin 'null'/)
})

function isOwn(origin: string, host: string): boolean {
  return URL.canParse(origin) && new URL(origin).host === host
}

await t.test('no origin but its own passes', async (t) => {
  const site = fc.webAuthority().map((name) => `http://${name}`)
  const origins = fc.oneof(fc.string(), fc.webUrl(), site)
  const names = fc.constantFrom(...LOCAL)
  fc.assert(
    fc.property(origins, names, (origin, name) => {
      const host = `${name}:8000`
      fc.pre(!isOwn(origin, host))
      t.match(refusalOf({ host, origin }), /^PERMISSION_DENIED /)
    }),
    { numRuns: 300 },
  )
})
