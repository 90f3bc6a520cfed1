// needs: nats
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort, type NatsServer, startProcess, withoutNatsServer } from '@tutti/chassis/testing'
import * as fc from 'fast-check'
import { Empty } from 'nats'
import t from 'tap'
import { createNkey } from './nkey.ts'
import { buildClusterConfig } from './server-config.ts'
import { tenantSubjects } from './tenant-subjects.ts'
import {
  connectTenant,
  createExternalKeys,
  type ExternalKeys,
  externalConfig,
  startTenantServer,
  type Teardown,
} from './testing/tenant-server.ts'
import { issueCredentials } from './user-credentials.ts'

const WITH_NATS = { skip: withoutNatsServer() }

const HOUR_MS = 3_600_000

function credentialsOf(
  issuer: ExternalKeys,
  namespace: string,
  lifetimeMs = HOUR_MS,
  prefix = 'tutti',
): string {
  return issueCredentials({ issuer, prefix, namespace, lifetimeMs, nowMs: Date.now() })
}

async function startServer(t: Teardown, keys: ExternalKeys): Promise<NatsServer> {
  return await startTenantServer(t, { 'tenancy.conf': externalConfig(keys) })
}

function isLetIn(t: Teardown, server: NatsServer, credentials: string): Promise<boolean> {
  return connectTenant(t, server.url, credentials).then(
    () => true,
    (error: unknown) => {
      if (error instanceof Error && /authorization violation/i.test(error.message)) return false
      throw error
    },
  )
}

await t.test('two namespaces on one broker', WITH_NATS, async (t) => {
  const keys = createExternalKeys()
  const server = await startServer(t, keys)
  // The name of one is the beginning of the other's.
  const [a, b] = await Promise.all(
    ['team', 'team-b'].map((name) =>
      connectTenant(t, server.url, credentialsOf(keys, name), `tutti.${name}.inbox.x`),
    ),
  )
  if (a === undefined || b === undefined) throw new Error('want two')

  await t.test('each may use its own subjects', async (t) => {
    for (const subject of ['tutti.team.hb.step', 'tutti.team.peer.x.data']) {
      t.equal(await a.mayPublish(subject), true, subject)
      t.equal(await a.maySubscribe(subject), true, subject)
    }
    t.equal(await a.maySubscribe('tutti.team.>'), true)
  })

  await t.test(
    'neither may publish, subscribe or queue in the other, nor around both',
    async (t) => {
      const subjects = [
        ['tutti.team-b.hb.step', 'tutti.team-b.peer.x.ctl', 'tutti.team-b', 'tutti.team'],
        ['other.team.hb.step', 'tutti.x', '_INBOX.x', '_INBOX.x.y', '$SYS.REQ.SERVER.PING'],
      ].flat()
      for (const subject of subjects) {
        t.equal(await a.mayPublish(subject), false, `publish ${subject}`)
        t.equal(await a.maySubscribe(subject), false, `subscribe ${subject}`)
      }
      const around = [
        '>',
        'tutti.>',
        'tutti.*.>',
        '*.team.>',
        'tutti.*.hb.*',
        'tutti.team-b.inbox.>',
      ]
      for (const subject of [...around, '_INBOX.>', '$SYS.>']) {
        t.equal(await a.maySubscribe(subject), false, `subscribe ${subject}`)
      }
      t.equal(await b.mayPublish('tutti.team.hb.step'), false)
      t.equal(await b.maySubscribe('tutti.team.>'), false)
    },
  )

  await t.test(
    'what one publishes in vain does not arrive, and answers come to the own inbox alone',
    async (t) => {
      const heard: string[] = []
      b.connection.subscribe('tutti.team-b.>', {
        callback: (_error, message) => {
          heard.push(message.subject)
          if (message.subject === 'tutti.team-b.ask') message.respond(Empty)
        },
      })
      await b.connection.flush()
      a.connection.publish('tutti.team-b.hb.step', 'x')
      // Nor does the answer of somebody of the own namespace who is asked to send it there.
      a.connection.subscribe('tutti.team.ask', { callback: (_error, one) => one.respond('x') })
      a.connection.publish('tutti.team.ask', Empty, { reply: 'tutti.team-b.hb.step' })
      await a.connection.flush()
      await a.connection.flush()
      await b.connection.request('tutti.team-b.ask', Empty, { timeout: 30_000 })
      t.equal(heard[0], 'tutti.team-b.ask')
      t.match(heard[1], /^tutti\.team-b\.inbox\.x\./)
      t.equal(heard.length, 2)
    },
  )
})

await t.test(
  'what a credential permits is the subjects of its namespace, whatever the names',
  WITH_NATS,
  async (t) => {
    const keys = createExternalKeys()
    const server = await startServer(t, keys)
    const label = fc.stringMatching(/^[a-z0-9](?:[-a-z0-9]{0,8}[a-z0-9])?$/)
    const names = fc
      .record({
        prefix: fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9_-]{0,8}$/),
        own: label,
        tail: label,
      })
      .chain(({ prefix, own, tail }) => {
        const token = fc.constantFrom(
          prefix,
          own,
          own + tail,
          own.slice(0, -1) || tail,
          tail,
          '_INBOX',
          '$SYS',
          '*',
          '>',
        )
        const rest = fc.array(token, { minLength: 1, maxLength: 4 })
        const near = rest.map((tokens) => [prefix, own, ...tokens])
        return fc.record({
          prefix: fc.constant(prefix),
          own: fc.constant(own),
          subjects: fc.array(fc.oneof(near, rest), { minLength: 1, maxLength: 8 }),
        })
      })
    await fc.assert(
      fc.asyncProperty(names, async ({ prefix, own, subjects }) => {
        const opened: (() => Promise<unknown>)[] = []
        const scope = { teardown: (close: () => Promise<unknown>) => void opened.push(close) }
        const client = await connectTenant(
          scope,
          server.url,
          credentialsOf(keys, own, HOUR_MS, prefix),
        )
        try {
          for (const tokens of subjects) {
            // `>` is a wildcard only at the end, and a subject elsewhere is not one that the server takes from anybody.
            if (tokens.indexOf('>') !== -1 && tokens.indexOf('>') < tokens.length - 1) continue
            const subject = tokens.join('.')
            const isOwn = tokens.length > 2 && tokens[0] === prefix && tokens[1] === own
            t.equal(await client.maySubscribe(subject), isOwn, `${prefix} ${own}: ${subject}`)
            const isLiteral = !tokens.includes('*') && !tokens.includes('>')
            if (isLiteral)
              t.equal(await client.mayPublish(subject), isOwn, `${prefix} ${own}: ${subject}`)
          }
        } finally {
          for (const close of opened) await close()
        }
      }),
      { numRuns: 60 },
    )
  },
)

await t.test('names that could make other subjects are refused', async (t) => {
  const name = fc.oneof(
    fc.string(),
    fc.constantFrom('', '*', '>', 'a.b', 'a.>', 'A', '-a', 'a-', 'a b', 'a\n', 'ä'),
  )
  fc.assert(
    fc.property(name, name, (prefix, namespace) => {
      try {
        const tokens = tenantSubjects({ prefix, namespace }).split('.')
        t.same(tokens, [prefix, namespace, '>'])
        t.notMatch(`${prefix}${namespace}`, /[.*>\s%]/)
      } catch (error) {
        t.match(error, { reason: 'INTERNAL' })
      }
    }),
  )
  for (const prefix of ['_INBOX', '$SYS', '']) {
    t.throws(() => tenantSubjects({ prefix, namespace: 'a' }), { message: /subject prefix/ })
  }
})

await t.test('who is not let in', WITH_NATS, async (t) => {
  const keys = createExternalKeys()
  const server = await startServer(t, keys)
  t.equal(await isLetIn(t, server, credentialsOf(keys, 'a')), true)
  t.equal(await isLetIn(t, server, credentialsOf(keys, 'a', -1000)), false, 'expired')
  t.equal(
    await isLetIn(t, server, credentialsOf(createExternalKeys(), 'a')),
    false,
    'of other keys',
  )
  const elsewhere = { ...createExternalKeys(), account: keys.account }
  t.equal(
    await isLetIn(t, server, credentialsOf(elsewhere, 'a')),
    false,
    "of a key that is not the account's",
  )
})

await t.test('a credential ends while it is in use', WITH_NATS, async (t) => {
  const keys = createExternalKeys()
  const server = await startServer(t, keys)
  const client = await connectTenant(t, server.url, credentialsOf(keys, 'a', 5000))
  t.match(await client.connection.closed(), { message: /authentication expired/i })
})

const block = (port: number | undefined, file: string): string =>
  `server_name: s${port}\ncluster { name: tutti, listen: "127.0.0.1:${port}", pool_size: -1\n include '${file}'\n}`

await t.test(
  'servers of a cluster admit one another, and no other server',
  WITH_NATS,
  async (t) => {
    const keys = createExternalKeys()
    const ports = [await freePort(), await freePort()]
    const cluster = buildClusterConfig(
      { routePassword: 'the-password' },
      ports.map((port) => `127.0.0.1:${port}`),
    )
    const files = { 'tenancy.conf': externalConfig(keys), 'cluster-2.conf': cluster }
    const [one, two] = await Promise.all(
      ports.map((port) => startTenantServer(t, files, { block: block(port, 'cluster-2.conf') })),
    )
    if (!one || !two) throw new Error('want two')
    const [a, b] = await Promise.all([
      connectTenant(t, one.url, credentialsOf(keys, 'a'), 'tutti.a.inbox'),
      connectTenant(t, two.url, credentialsOf(keys, 'a'), 'tutti.a.inbox'),
    ])
    a.connection.subscribe('tutti.a.ask', {
      callback: (_error, message) => message.respond('here'),
    })
    await a.connection.flush()
    // The route comes, and with it the interest of the other server.
    for (;;) {
      const answer = await b.connection
        .request('tutti.a.ask', Empty, { timeout: 1000 })
        .catch(() => undefined)
      if (answer !== undefined) {
        t.equal(answer.string(), 'here')
        break
      }
    }
    const stranger = buildClusterConfig({ routePassword: 'not-the-password' }, [
      `127.0.0.1:${ports[0]}`,
    ])
    const third = { ...files, 'cluster-3.conf': stranger }
    await startTenantServer(t, third, { block: block(await freePort(), 'cluster-3.conf') })
    await one.waitForLine((line) => /authentication error/i.test(line))
  },
)

const ROUTER = new URL('../../../services/router/dist/main.js', import.meta.url).pathname

await t.test(
  'a router whose credential is good no more takes the renewed one from its file',
  WITH_NATS,
  async (t) => {
    const keys = createExternalKeys()
    const server = await startServer(t, keys)
    const folder = await mkdtemp(join(tmpdir(), 'tutti-renewal-'))
    t.teardown(() => rm(folder, { recursive: true, force: true }))
    const file = join(folder, 'nats.creds')
    await writeFile(file, credentialsOf(keys, 'a'))
    const listeners = ['grpc', 'http', 'metrics'].flatMap((listener) => [
      `--${listener}-address=127.0.0.1`,
      `--${listener}-port=0`,
    ])
    const names = [`--nats=${server.url}`, '--repository-name=a', `--model-repository=${folder}`]
    const router = await startProcess(
      process.execPath,
      [ROUTER, ...names, `--nats-creds-file=${file}`, ...listeners],
      { readyWhen: (line) => line.includes('"server ready"'), readyTimeoutMs: 60_000 },
    )
    t.teardown(() => router.stop('SIGKILL'))
    const rotated = { ...keys, signing: createNkey('account') }
    await writeFile(file, credentialsOf(rotated, 'a'))
    await server.reload({ 'tenancy.conf': externalConfig(rotated) })
    const connects = (): number =>
      router.lines.filter((line) => line.includes('"broker connected"')).length
    // Each connection, control and data, has come back once.
    await router.waitForLine(() => connects() === 4)
    t.notMatch(router.lines.join('\n'), /cannot be connected/, 'at the first attempt')
  },
)
