// needs: redis
import { createServer, type Socket } from 'node:net'
import { createClient } from '@redis/client'
import { createLogger, parseFlags, systemClock } from '@tutti/chassis'
import {
  createTestCertificates,
  type RedisServer,
  startRedisServer,
  until,
  withoutRedisServer,
} from '@tutti/chassis/testing'
import { ServerMetrics } from '@tutti/telemetry'
import type { NamedTensor } from '@tutti/tensor'
import { floats } from '@tutti/tensor/testing'
import t, { type Test } from 'tap'
import { CACHE_FLAGS, openCache } from './cache-flags.ts'
import { decodeEntry, encodeEntry } from './redis-entry.ts'
import type { CachedResponse, ResponseCache } from './response-cache.ts'

const skip = withoutRedisServer()

const RESPONSE: CachedResponse = {
  outputs: [
    floats('x', [1, -2.5]),
    { name: 'text', datatype: 'BYTES', shape: [1], data: Uint8Array.of(2, 0, 0, 0, 104, 105) },
    { name: 'none', datatype: 'INT64', shape: [0, 3], data: new Uint8Array() },
  ],
  parameters: new Map([
    ['b', { kind: 'bool', value: true }],
    ['i', { kind: 'int64', value: -(2n ** 63n) }],
    ['u', { kind: 'uint64', value: 2n ** 64n - 1n }],
    ['d', { kind: 'double', value: Number.NaN }],
    ['s', { kind: 'string', value: 'ü,=\n' }],
  ]),
}

function large(bytes: number): CachedResponse {
  const data = new Uint8Array(bytes)
  const output: NamedTensor = { name: 'x', datatype: 'UINT8', shape: [bytes], data }
  return { outputs: [output], parameters: new Map() }
}

/** Opens a cache as the flags say, with what it logs. */
async function open(t: Test, words: readonly string[], env: Record<string, string> = {}) {
  const { values } = parseFlags(
    CACHE_FLAGS,
    words.map((word) => `--cache-config=redis,${word}`),
  )
  const lines: string[] = []
  const log = createLogger({
    name: 'test',
    destination: { write: (line: string) => void lines.push(line) },
  })
  const opened = new AsyncDisposableStack()
  t.teardown(() => opened.disposeAsync())
  const metrics = new ServerMetrics()
  const cache = await openCache(values, { clock: systemClock, metrics, log, env, opened })
  if (cache === undefined) throw new Error('there is no cache')
  const logged = (message: string): number => lines.filter((line) => line.includes(message)).length
  return { cache, lines, logged, metrics }
}

async function start(t: Test, args?: (port: number) => readonly string[]): Promise<RedisServer> {
  const server = await startRedisServer(args)
  t.teardown(() => server.kill())
  return server
}

async function adminOf(t: Test, { port }: RedisServer) {
  const client = createClient({ url: `redis://127.0.0.1:${port}` }).on('error', () => {})
  await client.connect()
  t.teardown(() => client.destroy())
  return client
}

const at = ({ port }: { readonly port: number }): string[] => ['host=127.0.0.1', `port=${port}`]

/** A server that is no Redis. */
async function listen(t: Test, talk: (socket: Socket) => void): Promise<{ readonly port: number }> {
  const server = createServer((socket) => talk(socket.on('error', () => {}))).listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await new Promise((resolve) => server.once('listening', resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('it has no port')
  return address
}

async function keep(cache: ResponseCache, key: string, response = RESPONSE): Promise<void> {
  cache.insert(key, response)
  await until(`${key} is kept`, async () => (await cache.lookup(key)) !== undefined)
}

await t.test('an entry is read as it was written, for its key, or not at all', (t) => {
  const entry = encodeEntry('k', RESPONSE)
  t.same(decodeEntry('k', entry), RESPONSE)
  t.equal(decodeEntry('other', entry), undefined)
  for (let length = 0; length < entry.byteLength; length += 1) {
    t.equal(decodeEntry('k', entry.subarray(0, length)), undefined)
    const turned = Buffer.from(entry)
    turned[length] = (turned[length] ?? 0) ^ 1
    t.equal(decodeEntry('k', turned), undefined)
  }
  t.equal(decodeEntry('k', Buffer.concat([entry, Buffer.of(0)])), undefined)
  t.end()
})

await t.test('what one process keeps answers another', { skip }, async (t) => {
  const server = await start(t)
  const [one, other] = await Promise.all([open(t, at(server)), open(t, at(server))])
  t.equal(await one.cache.lookup('k'), undefined)
  await keep(one.cache, 'k')
  t.same(await other.cache.lookup('k'), RESPONSE)
  const text = await other.metrics.render()
  for (const line of ['num_hits 1', 'num_misses 0', 'num_lookups 1']) {
    t.ok(text.includes(`nv_cache_${line}\n`), line)
  }
  t.notMatch(text, /nv_cache_(util|num_entries|num_evictions)/, 'Redis itself knows those')
  const separate = await open(t, [...at(server), 'db=3', 'pool_size=4'])
  t.equal(await separate.cache.lookup('k'), undefined)
  t.equal(separate.logged('pool_size has no effect'), 1)

  await t.test('foreign entries are misses, and are replaced', async (t) => {
    const client = await adminOf(t, server)
    const [name = ''] = await client.keys('*')
    await client.set(name, 'garbage')
    t.equal(await one.cache.lookup('k'), undefined)
    await client.del(name)
    await client.lPush(name, 'of another type')
    t.equal(await one.cache.lookup('k'), undefined)
    t.equal(one.logged('has an entry that is not ours'), 1)
    await keep(one.cache, 'k')
    t.same(await other.cache.lookup('k'), RESPONSE)
  })

  await t.test('nothing that is too large, and no more lookups than fit', async (t) => {
    one.cache.insert('large', large(16 * 1024 * 1024 + 1))
    await keep(one.cache, 'small', large(1))
    t.equal(await one.cache.lookup('large'), undefined)
    const found = Array.from({ length: 1025 }, () => one.cache.lookup('small'))
    t.equal(found.filter((one) => one === undefined).length, 1)
    const answers = await Promise.all(found.map(async (one) => await one))
    t.equal(answers.filter((one) => one !== undefined).length, 1024)
  })

  await t.test('a Redis that is full takes nothing, and answers', async (t) => {
    const client = await adminOf(t, server)
    await client.configSet('maxmemory', '1')
    for (const key of ['a', 'b']) one.cache.insert(key, RESPONSE)
    await until('it is refused', () => one.logged('takes no responses') === 1)
    t.same(await one.cache.lookup('k'), RESPONSE)
    t.equal(await one.cache.lookup('a'), undefined)
    await client.configSet('maxmemory', '0')
    await until('it is taken again', () => {
      one.cache.insert('a', RESPONSE)
      return one.logged('takes responses again') === 1
    })
    t.equal(one.logged('takes no responses'), 1)
  })
})

await t.test('a Redis that stops, hangs and restarts is a miss', { skip }, async (t) => {
  const server = await start(t)
  const { cache, logged } = await open(t, [...at(server), 'wait_timeout=500'])
  await keep(cache, 'k')
  server.pause()
  const before = performance.now()
  const found = await Promise.all([cache.lookup('k'), cache.lookup('k')])
  const took = performance.now() - before
  t.same(found, [undefined, undefined])
  t.ok(took > 490 && took < 10_000, `${took} ms`)
  t.equal(cache.lookup('k'), undefined, 'nothing waits for it any more')
  t.equal(logged('is away'), 1)
  server.resume()
  await until('it answers again', async () => (await cache.lookup('k')) !== undefined)
  const admin = await adminOf(t, server)
  const clients = await admin.clientList()
  t.equal(clients.length, 2, 'the connection that hung is closed')
  await server.restart()
  await until('it was lost', () => logged('is away') === 2)
  await until('it is back', () => logged('is connected') === 3)
  t.equal(await cache.lookup('k'), undefined, 'it forgot')
  await keep(cache, 'k')
  const waiting = cache.lookup('k')
  await cache.close()
  t.equal(await waiting, undefined)
})

await t.test('an answer that comes while the process is busy is in time', { skip }, async (t) => {
  const server = await start(t)
  const { cache, logged } = await open(t, [...at(server), 'wait_timeout=300'])
  cache.insert('k', RESPONSE)
  const found = cache.lookup('k')
  // The bytes that were written go out, and then nothing is read for long.
  await new Promise(setImmediate)
  const end = performance.now() + 1000
  while (performance.now() < end);
  t.same(await found, RESPONSE)
  t.equal(logged('is away'), 0)
})

await t.test('a server begins without Redis, and finds it', { skip }, async (t) => {
  const server = await start(t)
  await server.kill()
  const { cache, logged, lines } = await open(t, at(server))
  t.equal(cache.lookup('k'), undefined)
  cache.insert('k', RESPONSE)
  t.match(lines.join(''), 'ECONNREFUSED')
  const unwelcome = await open(t, [...at(server), 'password=other'])
  await server.restart()
  await until('it is there', () => logged('is connected') === 1)
  t.equal(logged('is away'), 1)
  await until('it refuses', () => unwelcome.logged('is away') === 2)
  t.match(unwelcome.lines.at(-1), 'without any password configured')
  await keep(cache, 'k')
})

await t.test('what accepts connections and says nothing is away', async (t) => {
  const silent = await listen(t, () => {})
  const { cache, logged } = await open(t, [...at(silent), 'connect_timeout=100'])
  t.equal(cache.lookup('k'), undefined)
  t.equal(logged('no answer within 100 ms'), 1)
})

const ANSWERS = [
  ':7\r\n',
  '+OK\r\n',
  '*1\r\n$1\r\na\r\n',
  'HTTP/1.1 400 Bad Request\r\n',
  '*1\r\n'.repeat(50_000),
]

await t.test('what answers with anything but a value is no Redis, and a miss', async (t) => {
  for (const answer of ANSWERS) {
    const server = await listen(t, (socket) => {
      // The probe finds nothing, and is not the last.
      const answers = ['$-1\r\n', answer]
      socket.on('data', () => void socket.write(answers.shift() ?? answer))
    })
    const { cache, logged } = await open(t, [...at(server), 'wait_timeout=200'])
    t.equal(await cache.lookup('k'), undefined, answer.slice(0, 20))
    t.equal(logged('is away'), 1)
    await cache.close()
  }
})

await t.test('user, password and database', { skip }, async (t) => {
  const server = await start(t, () => [
    '--requirepass',
    'se,cr=et',
    ...'--user cacher on >other ~tutti:* +get +set'.split(' '),
  ])
  const here = at(server)
  const env = { TRITONCACHE_REDIS_PASSWORD: 'se,cr=et' }
  for (const [words, variables] of [
    [['password=se,cr=et'], {}],
    [[], env],
    [['user=default'], env],
    [['user=cacher', 'password=other'], env],
    [[], { TRITONCACHE_REDIS_USERNAME: 'cacher', TRITONCACHE_REDIS_PASSWORD: 'other' }],
  ] as const) {
    const { cache } = await open(t, [...here, ...words], variables)
    await keep(cache, words.join())
  }
  for (const [words, variables, problem] of [
    [['password=wrong'], env, /refuses: WRONGPASS/],
    [[], {}, /refuses: NOAUTH/],
    [['db=99'], env, /refuses: ERR DB index/],
  ] as const) {
    await t.rejects(open(t, [...here, ...words], variables), {
      reason: 'FLAG_INVALID',
      message: problem,
    })
  }
})

await t.test('over TLS the certificate has to be for Redis, and known', { skip }, async (t) => {
  const files = await createTestCertificates(t.testdir({ roots: {} }))
  const { caFile, certFile, keyFile, clientCertFile, clientKeyFile } = files
  const server = await start(t, (port) => [
    ...`--port 0 --tls-port ${port} --tls-ca-cert-file ${caFile}`.split(' '),
    ...`--tls-cert-file ${certFile} --tls-key-file ${keyFile}`.split(' '),
  ])
  const here = [...at(server), 'tls_enabled=true']
  const own = [`cert=${clientCertFile}`, `key=${clientKeyFile}`]
  const { cache } = await open(t, [...here, ...own, `cacert=${caFile}`, 'sni=localhost'])
  await keep(cache, 'k')
  const stranger = await open(t, [...here, ...own])
  t.equal(stranger.logged('self-signed certificate'), 1, 'it is not believed')
  const wrong = await open(t, [...here, ...own, `cacert=${caFile}`, 'sni=other.test'])
  t.match(wrong.lines.join(''), 'other.test')
  await t.rejects(open(t, [...here, 'cacert=/absent']), {
    message: /redis,cacert: "\/absent" cannot/,
  })
})

await t.test('settings are checked, and no error repeats a value', async (t) => {
  const address = ['host=h', 'port=1']
  for (const [words, problem] of [
    [['port=6379'], 'got no address, want redis,host=HOST and redis,port=PORT'],
    [
      ['host=h,port=6379'],
      'redis,host is no name and no address, want .* each in a flag of its own',
    ],
    [['host=redis://secret@h', 'port=6379'], 'redis,host is no name and no address'],
    [['host=h', 'port=0'], 'redis,port is no whole number from 1 to 65535'],
    [[...address, 'db=one'], 'redis,db is no whole number'],
    [[...address, 'pool_size=0'], 'redis,pool_size is no'],
    [[...address, 'ttl=5'], 'redis has no setting "ttl"'],
    [[...address, 'cacert=ca.pem'], 'redis,cacert came without redis,tls_enabled=true'],
    [[...address, 'tls_enabled=yes'], 'redis,tls_enabled is neither'],
    [[...address, 'tls_enabled=true', 'cert=c.pem'], 'redis,cert and redis,key come together'],
    [[...address, 'secret'], 'got no SETTING=VALUE after redis,'],
    [[...address, 'password=secret', 'password=secret'], '"password" came twice'],
  ] as const) {
    const refused = open(t, words)
    await t.rejects(refused, { reason: 'FLAG_INVALID', message: new RegExp(problem) })
    await refused.catch((error: Error) => t.notMatch(error.message, 'secret'))
  }
})
