import { ServeError } from '@tutti/errors'
import * as fc from 'fast-check'
import t from 'tap'
import { checkCaller } from './check-caller.ts'

const API = '/console/api/overview'
const OWN = { host: '127.0.0.1:8080', origin: 'http://127.0.0.1:8080' }

function refusal(headers: Record<string, string>, route = API): string | undefined {
  try {
    checkCaller({ headers, route })
    return undefined
  } catch (error) {
    const { reason, message } = ServeError.from(error)
    return reason === 'FOREIGN_PAGE' ? message : reason
  }
}

await t.test('the page itself, and clients that are no browsers, are let in', async (t) => {
  for (const headers of [
    { host: 'localhost:8080' },
    { host: '[::1]:8080' },
    OWN,
    { ...OWN, 'sec-fetch-site': 'same-origin' },
    { host: 'tutti.localhost' },
  ]) {
    t.equal(refusal(headers), undefined, JSON.stringify(headers))
  }
})

await t.test('another name for this server is refused, on each path', async (t) => {
  for (const host of [
    'evil.example:8080',
    '',
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    '@',
  ]) {
    t.match(refusal({ host }), /want localhost or an IP address/, host)
    t.match(refusal({ host }, '/console'), /want localhost or an IP address/, host)
  }
})

await t.test('pages of other sites may lead to the console, and read nothing', async (t) => {
  const foreign = [
    { host: OWN.host, 'sec-fetch-site': 'cross-site' },
    { host: OWN.host, 'sec-fetch-site': 'same-site' },
    { host: OWN.host, origin: 'http://evil.example' },
    { host: OWN.host, origin: 'http://127.0.0.1:3000' },
    { host: OWN.host, origin: 'null' },
  ]
  for (const headers of foreign) {
    t.ok(refusal(headers), JSON.stringify(headers))
    t.equal(refusal(headers, '/console'), undefined)
  }
})

await t.test('no name of another host is ever taken for this machine', async () => {
  const host = fc.tuple(fc.domain(), fc.integer({ min: 1, max: 65_535 }))
  fc.assert(
    fc.property(host, ([name, port]) => {
      return name.endsWith('.localhost') || refusal({ host: `${name}:${port}` }) !== undefined
    }),
  )
})
