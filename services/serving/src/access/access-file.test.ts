import { createHash } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createLogger } from '@tutti/chassis'
import { createManualClock } from '@tutti/chassis/testing'
import t, { type Test } from 'tap'
import { AccessFile } from './access-file.ts'

const digest = (token: string): string => createHash('sha256').update(token).digest('hex')
const CI = `{ name: ci, tokenSha256: [${digest('one')}], models: [a] }`

const flagsOf = (path: string | undefined, isMutual = true) => ({
  'access-file': path,
  'grpc-use-ssl-mutual': false,
  'http-use-ssl-mutual': isMutual,
})

async function open(t: Test, text: string, isMutual = true) {
  const path = join(t.testdir({ 'access.yaml': text }), 'access.yaml')
  const lines: string[] = []
  const log = createLogger({
    level: 'info',
    name: 'test',
    destination: { write: (line) => void lines.push(line) },
  })
  const clock = createManualClock()
  const file = await AccessFile.open({ flags: flagsOf(path, isMutual), clock, log })
  t.teardown(() => file?.close())
  return { path, file, clock, lines }
}

await t.test('what is read is what is written', async (t) => {
  const { file } = await open(
    t,
    `identities:
      - ${CI}
      - name: admin
        tokenSha256: [${digest('two')}, ${digest('three')}]
        certificates: ["CN:admin", "URI:spiffe://example/admin"]
        models: ["*"]
        control: true
        quota: { requestsPerSecond: 10, burst: 20, concurrentRequests: 4 }`,
  )
  t.same(file?.identities(), [
    { name: 'ci', tokenSha256: [digest('one')], certificates: [], models: ['a'], control: false },
    {
      name: 'admin',
      tokenSha256: [digest('two'), digest('three')],
      certificates: ['CN:admin', 'URI:spiffe://example/admin'],
      models: ['*'],
      control: true,
      quota: { requestsPerSecond: 10, burst: 20, concurrentRequests: 4 },
    },
  ])
  t.equal(file?.identities(), file?.identities(), 'the same list while nothing changes')
})

const QUOTA = (quota: string) =>
  `identities: [{ name: a, tokenSha256: [${digest('x')}], models: [m], quota: ${quota} }]`
const NAMED = (names: string) => `identities: [{ name: a, certificates: [${names}], models: [m] }]`
for (const [name, text, told] of [
  ['nothing', '', /expected object/],
  ['no YAML', 'identities: [', /it is no YAML/],
  ['a field that is not known', `identities: [{ ...: 1 }]\nmore: 1`, /Unrecognized key/],
  [
    'a token itself',
    'identities: [{ name: a, tokenSha256: [secret], models: [m] }]',
    /64 hex digits/,
  ],
  ['no token', 'identities: [{ name: a, models: [m] }]', /tokenSha256/],
  ['a certificate of no kind', NAMED('alice'), /want CN:, DNS:, URI:/],
  ['one certificate twice', NAMED('CN:a, CN:a'), /each name of a certificate once/],
  ['no models', `identities: [{ name: a, tokenSha256: [${digest('x')}] }]`, /models/],
  ['one name twice', `identities: [${CI}, ${CI}]`, /each name once/],
  ['one token twice', `identities: [${CI}, ${CI.replace('ci', 'other')}]`, /each digest once/],
  ['* and others', `identities: [${CI.replace('[a]', '[a, "*"]')}]`, /\* alone/],
  ['an empty quota', QUOTA('{}'), /want requestsPerSecond, concurrentRequests or both/],
  ['a burst alone', QUOTA('{ burst: 1, concurrentRequests: 1 }'), /with requestsPerSecond only/],
  ['a rate of 0', QUOTA('{ requestsPerSecond: 0 }'), /requestsPerSecond/],
] as const) {
  await t.test(`refused: ${name}`, async (t) => {
    const error = await open(t, text).then(
      () => new Error('it was taken'),
      (thrown: Error & { reason?: string }) => thrown,
    )
    t.match(error, { reason: 'FLAG_INVALID', message: told })
    t.match(error.message, /^--access-file: .*access\.yaml: /)
    t.notMatch(error.message, /secret/)
  })
}

await t.test('certificates are refused where no listener asks clients for them', async (t) => {
  const text = `identities: [${CI}, { name: b, certificates: ["CN:b"], models: [m] }]`
  await t.rejects(open(t, text, false), {
    code: 'INVALID_ARGUMENT',
    message:
      /identities\[1\]\.certificates: got it without mutual TLS, want it with --grpc-use-ssl-mutual or/,
  })
  t.match((await open(t, text)).file?.identities(), [{ name: 'ci' }, { name: 'b' }])
  t.match((await open(t, `identities: [${CI}]`, false)).file?.identities(), [{ name: 'ci' }])
})

await t.test('a file that is not there is refused, and no file is none', async (t) => {
  const log = createLogger({ level: 'error', name: 'test', destination: { write: () => {} } })
  const o = { clock: createManualClock(), log }
  await t.rejects(AccessFile.open({ ...o, flags: flagsOf(join(t.testdir(), 'none')) }), {
    code: 'INVALID_ARGUMENT',
    reason: 'FLAG_INVALID',
  })
  t.equal(await AccessFile.open({ ...o, flags: flagsOf(undefined) }), undefined)
})

await t.test('a change counts, and a damaged file leaves the rules as they were', async (t) => {
  const { path, file, clock, lines } = await open(t, `identities: [${CI}]`)
  const look = async (isThere: () => boolean) => {
    while (!isThere()) {
      clock.advance(1000)
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  await writeFile(path, 'identities: [')
  await look(() => lines.some((line) => line.includes('access file cannot be used')))
  t.match(file?.identities(), [{ name: 'ci' }])
  await writeFile(path, 'identities: []')
  await look(() => lines.some((line) => line.includes('access file changed')))
  t.same(file?.identities(), [])
})
