import { type LogSettings, settingsOfLevel } from '@tutti/chassis'
import { openTestServer } from '@tutti/grpc/testing'
import { fromGrpcStatus } from '@tutti/protocol'
import { startRestServer } from '@tutti/rest'
import { createRestBackend, type RestBackend } from '@tutti/rest/testing'
import { FLAGS_RULE } from '@tutti/serving'
import t, { type Test } from 'tap'

const FIRST = {
  log_file: '',
  log_info: true,
  log_warning: true,
  log_error: true,
  log_verbose_level: 0,
  log_format: 'json',
}

async function startRest(t: Test, o: { backend?: RestBackend } = {}) {
  const logSettings = settingsOfLevel('info')
  const backend = o.backend ?? createRestBackend()
  const server = await startRestServer({ backend, address: '127.0.0.1', port: 0, logSettings })
  t.teardown(() => server.close())
  const url = `http://127.0.0.1:${server.port}/v2/logging`
  const set = (body: string, headers: Record<string, string> = {}) =>
    fetch(url, { method: 'POST', body, headers })
  return { logSettings, url, set }
}

await t.test('REST reads and sets what is logged, in the words of Triton', async (t) => {
  const { logSettings, url, set } = await startRest(t)
  t.same(await (await fetch(url)).json(), FIRST)
  const changed = await set(
    '{"log_info":false,"log_verbose_level":2,"log_format":"ISO8601","nope":1,"log_error":null}',
  )
  const want = { ...FIRST, log_info: false, log_verbose_level: 2, log_format: 'ISO8601' }
  t.same(await changed.json(), want)
  t.match(logSettings, { info: false, error: true, verboseLevel: 2, format: 'ISO8601' })
  for (const body of ['[]', '5', '{}']) t.equal((await set(body)).status, 200, body)
  const rows = [
    ['', 500, 'failed to parse the request JSON buffer: The document is empty. at 0'],
    ['{"log_info":"x"}', 500, 'attempt to access JSON non-boolean as boolean'],
    [
      '{"log_verbose_level":-1}',
      500,
      'attempt to access JSON non-unsigned-integer as unsigned-integer',
    ],
    ['{"log_format":5}', 500, 'attempt to access JSON non-string as string'],
    ['{"log_format":"x"}', 503, 'invalid argument for --log_format, got: x'],
    ['{"log_file":"/x"}', 501, 'log file location can not be updated through network protocol'],
    ['{"log_file":null}', 501, 'log file location can not be updated through network protocol'],
  ] as const
  for (const [body, status, error] of rows) {
    const got = await set(body)
    t.equal(got.status, status, body)
    t.same(await got.json(), { error })
  }
  // All or nothing.
  t.equal((await set('{"log_warning":false,"log_format":"x"}')).status, 503)
  t.same(await (await fetch(url)).json(), want)
  t.equal((await set(' '.repeat(70_000))).status, 413)
})

await t.test('pages of others, and clients of routers and steps, set nothing', async (t) => {
  const { set } = await startRest(t)
  t.equal((await set('{}', { origin: 'https://other.example' })).status, 403)
  const backend = createRestBackend()
  backend.control = FLAGS_RULE
  const { set: ask, url } = await startRest(t, { backend })
  const refused = await ask('{"log_info":false}')
  t.equal(refused.status, 501)
  t.match(await refused.json(), { error: /those of their flags/ })
  t.equal((await fetch(url)).status, 200)
})

await t.test('gRPC does the same, with its own texts', async (t) => {
  const logSettings: LogSettings = settingsOfLevel('info')
  const { client } = await openTestServer(t, {}, { logSettings })
  const ask = (settings: Record<string, object>) =>
    new Promise<unknown>((resolve, reject) => {
      client.objects.LogSettings({ settings }, (error, answer) => {
        if (error === null) resolve(answer)
        else reject(fromGrpcStatus(error))
      })
    })
  t.match(await ask({}), {
    settings: {
      log_file: { string_param: '' },
      log_info: { bool_param: true },
      log_verbose_level: { uint32_param: 0 },
      log_format: { string_param: 'json' },
    },
  })
  await ask({ log_info: { bool_param: false }, log_format: { string_param: 'default' } })
  t.match(logSettings, { info: false, warning: true, format: 'default' })
  const rows = [
    [{ log_info: { string_param: 'x' } }, "expect boolean for 'log_info'"],
    [{ log_error: {} }, "expect boolean for 'log_error'"],
    [{ log_verbose_level: { bool_param: true } }, "expect int32 for 'log_verbose_level'"],
    [{ log_format: { bool_param: true } }, "expect string for 'log_format'"],
    [{ log_format: { string_param: 'x' } }, 'invalid argument for log_format, got: x'],
  ] as const
  for (const [settings, message] of rows) {
    await t.rejects(ask(settings), { message, code: 'INVALID_ARGUMENT' })
  }
  await t.rejects(ask({ log_file: { string_param: '/x' } }), { code: 'UNIMPLEMENTED' })
})
