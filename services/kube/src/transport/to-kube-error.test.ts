import { assert, integer, jsonValue, property } from 'fast-check'
import t from 'tap'
import { KubeError } from '../kube-error.ts'
import { fromStatus, toKubeError } from './to-kube-error.ts'

await t.test('a status of the server is taken as it is', async (t) => {
  const status = {
    kind: 'Status',
    reason: 'Invalid',
    message: 'spec is bad',
    code: 422,
    details: { causes: [{ reason: 'X', message: 'no', field: 'spec.a' }, 5, { field: 1 }] },
  }
  const text = JSON.stringify(status)
  const error = toKubeError({
    title: 'PUT /x',
    status: 422,
    retryAfter: undefined,
    text,
  })
  t.match(error, {
    status: 422,
    reason: 'Invalid',
    message: 'spec is bad',
    retryAfterMs: undefined,
  })
  t.same(error.causes, [{ reason: 'X', message: 'no', field: 'spec.a' }, {}])
})

await t.test('the wait is that of the header, else that of the status', async (t) => {
  const text = JSON.stringify({ kind: 'Status', details: { retryAfterSeconds: 3 } })
  const wait = (retryAfter: string | undefined) =>
    toKubeError({ title: '', status: 429, retryAfter, text }).retryAfterMs
  t.equal(wait('2'), 2000)
  t.equal(wait(undefined), 3000)
  for (const odd of ['', ' ', 'soon', new Date().toUTCString()]) t.equal(wait(odd), 3000)
})

await t.test('an answer of something else is shown in part', async (t) => {
  const text = `<html>${'x'.repeat(1000)}`
  const error = toKubeError({
    title: 'GET /x',
    status: 502,
    retryAfter: undefined,
    text,
  })
  t.match(error, { status: 502, reason: 'BadGateway', message: /^GET \/x: HTTP 502: <html>x+$/ })
  t.ok(error.message.length < 300)
})

await t.test('any body gives an error', async (t) => {
  assert(
    property(jsonValue(), integer({ min: 400, max: 599 }), (body, status) => {
      const error = fromStatus(body, status)
      return error instanceof KubeError && error.message !== '' && error.status > 0
    }),
  )
  t.pass()
})
