import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createHealth, createLogger, loadTracingSettings, parseFlags } from '@tutti/chassis'
import t from 'tap'
import { startServe } from './serve.ts'
import { SERVE_FLAGS } from './serve-flags.ts'

const LOOPBACK = ['grpc', 'http', 'metrics'].flatMap((server) => [
  `--${server}-address=127.0.0.1`,
  `--${server}-port=0`,
])

await t.test('the libraries of the clouds read the credentials of a repository', async (t) => {
  const key = join(t.testdir({}), 'key.json')
  await writeFile(key, '{"type":"other"}')
  const cases: readonly (readonly [string, Readonly<Record<string, string>>, RegExp])[] = [
    [
      'gs://bucket/models',
      { GOOGLE_APPLICATION_CREDENTIALS: key },
      /key\.json', which cannot be used: it has the type "other", want service_account, /,
    ],
    [
      'as://account/container/models',
      { AZURE_TENANT_ID: 't', AZURE_CLIENT_ID: 'c', AZURE_FEDERATED_TOKEN_FILE: '/none' },
      /AZURE_FEDERATED_TOKEN_FILE has an identity that cannot be used: .*\/none/,
    ],
  ]
  for (const [uri, env, message] of cases) {
    const { values: flags } = parseFlags(SERVE_FLAGS, [`--model-repository=${uri}`, ...LOOPBACK])
    const written: string[] = []
    const destination = { write: (line: string) => written.push(line) }
    const started = startServe({
      flags,
      settings: loadTracingSettings({}),
      env,
      log: createLogger({ level: 'info', name: 'test', destination }),
      health: createHealth(),
    })
    await t.rejects(started, { message }, uri)
  }
})
