// needs: apiserver
import { createLogger, systemClock } from '@tutti/chassis'
import { createManualClock, type ManualClock } from '@tutti/chassis/testing'
import { type Client, createClient, createTransport } from '@tutti/kube'
import { type PlainClient, startApiServer, withoutKube } from '@tutti/kube/testing'
import t, { type Test } from 'tap'
import { createAccountKeys, toAccountTexts } from './account-keys.ts'
import { AccountTenancy, type AccountTenancyOptions } from './account-tenancy.ts'
import { ExternalTenancy, type ExternalTenancyOptions } from './external-tenancy.ts'
import { createNkey, readClaims } from './nkey.ts'
import { ROTATION_ANNOTATION } from './own-keys.ts'
import { NATS_SECRETS, type SecretClient } from './tenancy-secrets.ts'
import { openFakeLink } from './testing/fake-link.ts'

const DAY_MS = 24 * 3_600_000
const { keys: KEYS, server: SERVER, credentials: CREDENTIALS } = NATS_SECRETS

type Texts = Readonly<Record<string, string>>

/** A namespace for the operator, and what is in it. */
interface World {
  readonly plain: PlainClient
  readonly clock: ManualClock
  readonly lines: string[]
  readonly namespace: string
  /** As it is after a restart of the operator. */
  restarted(o?: Partial<AccountTenancyOptions>): AccountTenancy
  external(o: Pick<ExternalTenancyOptions, 'hasAuthorities'>): ExternalTenancy
  readonly client: Client
  texts(namespace: string, name: string): Promise<Texts>
  versions(): Promise<readonly string[]>
}

/** The issuer, in the credential of a namespace. */
function claimsOf(texts: Texts): unknown {
  return readClaims(texts['nats.creds']?.split('\n')[1] ?? '')
}

function toData(texts: Texts): Record<string, string> {
  return Object.fromEntries(
    Object.entries(texts).map(([name, text]) => [name, Buffer.from(text).toString('base64')]),
  )
}

async function startWorlds(t: Test): Promise<() => Promise<World>> {
  const server = await startApiServer()
  t.teardown(() => server.stop())
  const log = createLogger({ level: 'error', name: 'test' })
  const transport = createTransport(server.access(), { clock: systemClock, log, userAgent: 'test' })
  t.teardown(() => transport.close())
  const client = createClient(transport)
  let worlds = 0
  return async () => {
    worlds += 1
    return await openWorld(server.plain, client, `operator-${worlds}`)
  }
}

function path(space: string, name: string): string {
  return `/api/v1/namespaces/${space}/secrets/${name}`
}

async function openWorld(plain: PlainClient, client: Client, namespace: string): Promise<World> {
  for (const name of [namespace, `${namespace}-a`, `${namespace}-b`]) {
    await plain.create('/api/v1/namespaces', { metadata: { name } })
  }
  const clock = createManualClock({ epochMs: 1_800_000_000_000 })
  const lines: string[] = []
  const destination = { write: (line: string) => lines.push(line) }
  const log = createLogger({ level: 'info', name: 'test', destination })
  const common = { client, namespace, prefix: 'tutti', lifetimeMs: DAY_MS, clock, log }
  return {
    plain,
    clock,
    lines,
    namespace,
    client,
    restarted: (o = {}) =>
      new AccountTenancy({
        ...common,
        urls: ['tls://nats.example:4222'],
        clusterHosts: [],
        limits: { connections: 96, subscriptions: 1024 },
        secrets: () => [],
        onLost: () => {},
        openLink: openFakeLink,
        ...o,
      }),
    external: (o) => new ExternalTenancy({ ...common, issuerSecret: 'given', ...o }),
    texts: async (space, name) => {
      const { data } = await plain.get(path(space, name))
      return Object.fromEntries(
        Object.entries<string>(data).map(([key, text]) => [
          key,
          Buffer.from(text, 'base64').toString(),
        ]),
      )
    },
    versions: async () => {
      const secrets = await plain.list('/api/v1/secrets')
      return secrets
        .filter(({ metadata }) => metadata.namespace.startsWith(namespace))
        .map(({ metadata }) => `${metadata.name} ${metadata.resourceVersion}`)
    },
  }
}

await t.test('Secrets of NATS on a real API server', { skip: withoutKube() }, async (t) => {
  const newWorld = await startWorlds(t)

  await t.test('all are made once: a restart writes nothing', async (t) => {
    const world = await newWorld()
    const [a, b] = [`${world.namespace}-a`, `${world.namespace}-b`]
    const first = world.restarted()
    await first.ensureServers()
    t.same(await first.ensureTenant(a), { renewAtMs: 1_800_000_000_000 + DAY_MS / 2 })
    await first.ensureTenant(b)
    t.match(claimsOf(await world.texts(a, CREDENTIALS)), {
      nats: { pub: { allow: [`tutti.${a}.>`] } },
    })
    const { metadata, type } = await world.plain.get(path(a, CREDENTIALS))
    t.match(metadata.labels, { 'app.kubernetes.io/managed-by': 'tutti-operator' })
    t.equal(type, 'Opaque')
    const files = ['ca.crt', 'tenancy.conf', 'tls.crt', 'tls.key']
    t.same(Object.keys(await world.texts(world.namespace, SERVER)).toSorted(), files)
    const before = await world.versions()
    t.equal(before.length, 4)
    const again = world.restarted()
    await again.ensureServers()
    t.same(await again.ensureTenant(a), { renewAtMs: 1_800_000_000_000 + DAY_MS / 2 })
    await again.ensureTenant(b)
    t.same(await world.versions(), before)
    t.equal(world.lines.length, 3, 'the keys and two credentials')
    for (const seed of Object.values(await world.texts(world.namespace, KEYS))) {
      if (seed.startsWith('S')) t.notMatch(world.lines.join(''), seed)
    }
  })

  await t.test(
    'a credential is renewed when half of its life is over, and only that',
    async (t) => {
      const world = await newWorld()
      const a = `${world.namespace}-a`
      const tenancy = world.restarted()
      const { renewAtMs } = await tenancy.ensureTenant(a)
      const first = await world.texts(a, CREDENTIALS)
      world.clock.advance(DAY_MS / 2 - 1)
      await tenancy.ensureTenant(a)
      t.same(await world.texts(a, CREDENTIALS), first)
      world.clock.advance(1)
      t.equal(world.clock.epochMs(), renewAtMs)
      t.same(await tenancy.ensureTenant(a), { renewAtMs: renewAtMs + DAY_MS / 2 })
      t.match(claimsOf(await world.texts(a, CREDENTIALS)), { iat: renewAtMs / 1000 })
      await world.plain.patch(path(a, CREDENTIALS), {
        data: { 'nats.creds': null, x: 'eA==' },
      })
      await tenancy.ensureTenant(a)
      const files = ['ca.crt', 'nats.creds']
      t.same(Object.keys(await world.texts(a, CREDENTIALS)).toSorted(), files, 'damage heals')
    },
  )

  await t.test('a cluster has a file for its size, and a smaller one none', async (t) => {
    const world = await newWorld()
    const clusterHosts = ['n-0.n:6222', 'n-1.n:6222', 'n-2.n:6222']
    await world.restarted({ clusterHosts }).ensureServers()
    const texts = await world.texts(world.namespace, SERVER)
    t.ok('cluster-3.conf' in texts)
    t.match(texts['cluster-3.conf'], /nats-route:\/\/route:[\w-]{43}@n-2\.n:6222/)
    await world.restarted().ensureServers()
    const smaller = await world.texts(world.namespace, SERVER)
    t.notOk('cluster-3.conf' in smaller)
    t.equal(smaller['tenancy.conf'], texts['tenancy.conf'])
  })

  await t.test('keys are never overwritten and never made again', async (t) => {
    const world = await newWorld()
    const tenancy = world.restarted()
    await tenancy.ensureServers()
    const keys = path(world.namespace, KEYS)
    await world.plain.patch(keys, { data: toData({ 'signing.nk': 'SAdamaged' }) })
    const before = await world.versions()
    const damaged = {
      name: 'TerminalError',
      message: `Secret "${world.namespace}/tutti-nats-keys", key "signing.nk": it holds no seed of an account nkey, want SA...`,
    }
    await t.rejects(world.restarted().ensureServers(), damaged)
    await t.rejects(world.restarted().ensureTenant(`${world.namespace}-a`), damaged)
    t.same(await world.versions(), before)
    await world.plain.delete(keys)
    const missing = {
      name: 'TerminalError',
      message: /tutti-nats-keys" is missing, but .*restore it/,
    }
    await t.rejects(world.restarted().ensureServers(), missing)
    await t.rejects(world.restarted().ensureTenant(`${world.namespace}-a`), missing)
    await world.plain.delete(path(world.namespace, SERVER))
    await world.restarted().ensureServers()
    t.ok(await world.texts(world.namespace, KEYS))
  })

  await t.test('keys that are made between two looks are no lost keys', async (t) => {
    const world = await newWorld()
    const { client } = world
    const slow: SecretClient = {
      create: (...made) => client.create(...made),
      mergePatch: (...patched) => client.mergePatch(...patched),
      get: async (resource, key, o) => {
        if (key.name === SERVER) await world.restarted().ensureServers()
        return await client.get(resource, key, o)
      },
    }
    await world.restarted({ client: slow }).ensureTenant(`${world.namespace}-a`)
    t.equal(world.lines.length, 2, 'the keys once, and a credential')
  })

  await t.test('a Secret that somebody else made stays as it is', async (t) => {
    const world = await newWorld()
    const a = `${world.namespace}-a`
    const theirs = { metadata: { name: CREDENTIALS }, data: toData({ 'nats.creds': 'theirs' }) }
    await world.plain.create(`/api/v1/namespaces/${a}/secrets`, theirs)
    await t.rejects(world.restarted().ensureTenant(a), {
      name: 'TerminalError',
      message: `Secret "${a}/tutti-nats" is not the operator's, it lacks the label app.kubernetes.io/managed-by: tutti-operator: delete it`,
    })
    t.same(await world.texts(a, CREDENTIALS), { 'nats.creds': 'theirs' })
  })

  await t.test('two operators at once agree on the keys', async (t) => {
    const world = await newWorld()
    const results = await Promise.allSettled(
      Array.from({ length: 4 }, () => world.restarted().ensureServers()),
    )
    t.ok(results.some(({ status }) => status === 'fulfilled'))
    await world.restarted().ensureServers()
    const [keys, before] = [await world.texts(world.namespace, KEYS), await world.versions()]
    await world.restarted().ensureServers()
    t.same(await world.texts(world.namespace, KEYS), keys)
    t.same(await world.versions(), before)
  })

  await t.test('a rotation, step by step, by an annotation', async (t) => {
    const world = await newWorld()
    const a = `${world.namespace}-a`
    const tenancy = world.restarted()
    await tenancy.ensureServers()
    await tenancy.ensureTenant(a)
    const first = await world.texts(world.namespace, KEYS)
    const step = async (name: string): Promise<Texts> => {
      const annotations = { [ROTATION_ANNOTATION]: name }
      await world.plain.patch(path(world.namespace, KEYS), { metadata: { annotations } })
      await tenancy.ensureServers()
      await tenancy.ensureTenant(a)
      // Once is enough.
      await world.restarted().ensureServers()
      return await world.texts(world.namespace, KEYS)
    }
    const issuer = async () => claimsOf(await world.texts(a, CREDENTIALS))
    const before = await issuer()
    const refusals = () =>
      world.lines.splice(0).flatMap((line) => /rotation refused|annotation .*/.exec(line) ?? [])
    t.same(await step('use'), first)
    t.match(refusals(), [/annotation .*want \\"add\\" first/])
    t.same(await step('Add'), first)
    t.match(refusals(), [/got \\"Add\\", want one of add, use, remove, remove-now/])
    t.same(
      await tenancy.ensureTenant(a),
      { renewAtMs: 1_800_000_000_000 + DAY_MS / 2 },
      'tenants go on',
    )
    const added = await step('add')
    t.same(await issuer(), before)
    t.match(added, first)
    const used = await step('use')
    t.equal(used['signing.nk'], added['signing-next.nk'])
    t.equal(used['signing-previous.nk'], first['signing.nk'])
    t.notSame(await issuer(), before, 'credentials are of the new key at once')
    t.same(await step('remove'), used)
    t.match(refusals(), [/credentials of the last key are good until 2027-01-16/])
    world.clock.advance(DAY_MS)
    const removed = await step('remove')
    t.same(removed, { ...first, 'signing.nk': used['signing.nk'] })
  })

  await t.test('external servers: an account and a signing key from a Secret', async (t) => {
    const world = await newWorld()
    const a = `${world.namespace}-a`
    const tenancy = world.external({ hasAuthorities: true })
    const missing = {
      name: 'TerminalError',
      message: `Secret "${world.namespace}/given" is missing`,
    }
    await t.rejects(tenancy.ensureServers(), missing)
    await t.rejects(tenancy.ensureTenant(a), missing)
    const [account, signing] = [createNkey('account'), createNkey('account')]
    const given = { 'account.pub': account.publicKey, 'signing.nk': signing.seed, 'ca.crt': 'PEM' }
    await world.plain.create(`/api/v1/namespaces/${world.namespace}/secrets`, {
      metadata: { name: 'given' },
      data: toData(given),
    })
    await tenancy.ensureServers()
    await tenancy.ensureTenant(a)
    const texts = await world.texts(a, CREDENTIALS)
    t.equal(texts['ca.crt'], 'PEM')
    t.match(claimsOf(texts), {
      iss: signing.publicKey,
      nats: { issuer_account: account.publicKey },
    })
    t.equal((await world.versions()).length, 2, 'there are no keys and no configuration of ours')
    const trustful = world.external({ hasAuthorities: false })
    await t.rejects(trustful.ensureTenant(a), {
      name: 'TerminalError',
      message: /given", key "ca.crt" is there, want that without --nats-private-authority$/,
    })
    const other = createNkey('account')
    await world.plain.patch(path(world.namespace, 'given'), {
      data: toData({ 'signing.nk': other.seed }),
    })
    await tenancy.ensureTenant(a)
    t.match(claimsOf(await world.texts(a, CREDENTIALS)), { iss: other.publicKey })
    await world.plain.patch(path(world.namespace, 'given'), { data: { 'ca.crt': null } })
    await t.rejects(tenancy.ensureServers(), { message: /"ca.crt" is missing, want that with/ })
    await trustful.ensureTenant(a)
    t.notOk('ca.crt' in (await world.texts(a, CREDENTIALS)), 'pods have none that is out of date')
    await world.plain.patch(path(world.namespace, 'given'), { data: { 'account.pub': null } })
    await t.rejects(tenancy.ensureTenant(a), { message: /given", key "account.pub" is missing/ })
  })

  await t.test('keys that were kept are taken', async (t) => {
    const world = await newWorld()
    const texts = toAccountTexts(createAccountKeys(world.clock.epochMs()))
    await world.plain.create(`/api/v1/namespaces/${world.namespace}/secrets`, {
      metadata: { name: KEYS },
      data: toData(texts),
    })
    await world.restarted().ensureServers()
    t.same(await world.texts(world.namespace, KEYS), texts)
  })
})
