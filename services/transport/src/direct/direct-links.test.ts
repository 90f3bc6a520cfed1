import { randomBytes } from 'node:crypto'
import {
  chmodSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silentLogger } from '@tutti/chassis'
import { type FaultProxy, freePort, startFaultProxy } from '@tutti/chassis/testing'
import type { DirectAddress, Heartbeat } from '@tutti/protocol'
import t from 'tap'
import { completeSettings, type EndpointSettings } from '../endpoint-settings.ts'
import { TransportEvents } from '../log-events.ts'
import { directOptions } from '../testing/direct-options.ts'
import { tensorBytes, until } from '../testing/envelopes.ts'
import { encodeFrameHead } from './direct-frames.ts'
import { openHandshake } from './direct-handshake.ts'
import { DirectLinks, type DirectTraffic, MOST_PENDING } from './direct-links.ts'
import { type DirectOptions, parseDirectAddress } from './direct-sockets.ts'

/** A test, whose teardown closes what it opened. */
interface Teardown {
  teardown(close: () => Promise<void>): void
}

const KINDS = ['unix', 'tls', 'tcp'] as const
const MAX_BYTES = 1024 * 1024

function heartbeat(member: string, direct: DirectAddress | undefined): Heartbeat {
  return {
    member,
    role: 'step',
    sequence: 1,
    description: '',
    inFlight: 0,
    queued: 0,
    freeSlots: 1,
    freeBytes: 1,
    unaskedBytes: 1,
    draining: false,
    transports: ['nats'],
    revisions: [],
    protocol: 1,
    ...(direct !== undefined && { direct }),
  }
}

/** One end, and all that it heard. */
function openLinks(
  t: Teardown,
  role: Heartbeat['role'],
  direct: DirectOptions,
  o: Partial<EndpointSettings> = {},
  self: string = role,
) {
  const heard: string[] = []
  const failures: string[] = []
  const alive = new Set<string>()
  const traffic: DirectTraffic = {
    message: (member, bytes) => void heard.push(`${member}: ${Buffer.from(bytes).toString()}`),
    place: (member, head, size) => {
      const into = new Uint8Array(size - 4)
      const name = Buffer.from(head.subarray(0, 4)).toString()
      const arrived = (): void => {
        const isWhole = Buffer.from(tensorBytes(into.byteLength)).equals(into)
        heard.push(`${member}: ${name} ${isWhole ? into.byteLength : 'damaged'}`)
      }
      return { into, arrived }
    },
    alive: (member) => void alive.add(member),
    ended: (member, isInOrder) => void heard.push(`${member} ${isInOrder ? 'ended' : 'broken'}`),
  }
  const warn = (_message: string, fields?: Readonly<Record<string, unknown>>): void =>
    void failures.push(
      `${String(fields?.['member'])}: ${String(fields?.['why'] ?? fields?.['subject'])}`,
    )
  const links = new DirectLinks({
    self,
    role,
    direct,
    settings: completeSettings({ directConnectMs: 5000, ...o }),
    events: new TransportEvents({ ...silentLogger, warn }),
    maxPayload: () => MAX_BYTES,
    traffic,
  })
  t.teardown(() => links.close(100))
  return { links, heard, failures, alive }
}

/** A step that listens, and a router that has heard it. */
async function openPair(t: Teardown, direct: DirectOptions, o: Partial<EndpointSettings> = {}) {
  const step = openLinks(t, 'step', direct, o)
  await step.links.listening
  const router = openLinks(t, 'router', direct, o)
  const hear = (): void => router.links.heard(heartbeat('step', step.links.announced))
  hear()
  return { step, router, hear }
}

async function openConnected(
  t: Teardown,
  direct: DirectOptions,
  o: Partial<EndpointSettings> = {},
) {
  const pair = await openPair(t, direct, o)
  const { step, router } = pair
  await until(() => step.links.members.length > 0 && router.links.members.length > 0)
  return pair
}

/** A step behind a relay. */
async function openRelayed(t: Teardown, o: Partial<EndpointSettings> = {}) {
  const port = await freePort()
  const proxy = await startFaultProxy({ port })
  t.teardown(() => closeProxy(proxy))
  const listen = { host: '127.0.0.1', port }
  const announce = { host: '127.0.0.1', port: proxy.port }
  return { proxy, ...(await openConnected(t, { kind: 'tcp', listen, announce }, o)) }
}

async function closeProxy(proxy: FaultProxy): Promise<void> {
  proxy.resume()
  proxy.cut()
  await proxy.close()
}

for (const kind of KINDS) {
  await t.test(`messages and chunks go both ways in order over ${kind}`, async (t) => {
    const { step, router } = await openConnected(t, directOptions(kind))
    const sizes = [0, 1, 600, 70_000, MAX_BYTES - 4]
    let written = 0
    for (const [from, to] of [
      [router, 'step'],
      [step, 'router'],
    ] as const) {
      const connection = from.links.of(to)
      for (const size of sizes) {
        connection?.sendMessage(Buffer.from(`before ${size}`))
        connection?.sendChunk(Buffer.from('head'), tensorBytes(size), () => (written += 1))
      }
    }
    const want = (from: string): string[] =>
      sizes.flatMap((size) => [`${from}: before ${size}`, `${from}: head ${size}`])
    await until(() => step.heard.length >= 10 && router.heard.length >= 10)
    t.same([step.heard, router.heard], [want('router'), want('step')])
    await until(() => written === 10)
  })

  await t.test(`what was sent before a close arrives over ${kind}`, async (t) => {
    const { step, router } = await openConnected(t, directOptions(kind))
    step.links.of('router')?.sendChunk(Buffer.from('head'), tensorBytes(900_000), undefined)
    step.links.of('router')?.sendMessage(Buffer.from('last'))
    await step.links.close(5000)
    t.same(router.heard.slice(0, 2), ['step: head 900000', 'step: last'])
    t.equal(step.links.of('router'), undefined)
    await until(() => router.heard.includes('step ended'))
    t.equal(router.links.of('step'), undefined)
  })

  await t.test(`a router with another key is not let in over ${kind}`, async (t) => {
    const { step, router } = await openPair(t, directOptions(kind))
    const { address = '' } = step.links.announced ?? {}
    const stranger = openLinks(t, 'router', directOptionsOf(address, kind))
    stranger.links.heard(heartbeat('step', { address, key: 'x'.repeat(43) }))
    await until(() => stranger.failures.length > 0)
    t.same(stranger.links.members, [])
    await until(() => router.links.members.length === 1)
    t.same(step.links.members, ['router'], 'the other router is there')
    t.same(stranger.heard, [])
  })
}

/** Makes the options of a router that is to reach the address. */
function directOptionsOf(address: string, kind: (typeof KINDS)[number]): DirectOptions {
  if (kind !== 'unix') return { kind }
  return { kind, directory: join(address.slice('unix:'.length), '..') }
}

/** A connection to a step from outside. @returns all that came, and whether it is over. */
function openStranger(t: Teardown, address: string) {
  const socket = connect(Number(new URL(address).port), '127.0.0.1')
  const state = { received: Buffer.alloc(0), isOver: false }
  socket.on('data', (bytes) => (state.received = Buffer.concat([state.received, bytes])))
  socket.on('error', () => {})
  socket.on('close', () => (state.isOver = true))
  t.teardown(async () => void socket.destroy())
  return { socket, state }
}

function frameOf(bytes: Uint8Array): Buffer {
  return Buffer.concat([encodeFrameHead('handshake', bytes.byteLength), bytes])
}

await t.test('an attempt that fails is followed by others, after pauses that grow', async (t) => {
  let attempts = 0
  const server = createServer((socket) => {
    attempts += 1
    socket.on('error', () => {}).destroy()
  })
  const port = await new Promise<number>((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      resolve(typeof address === 'object' ? (address?.port ?? 0) : 0)
    })
  })
  t.teardown(() => void server.close())
  const router = openLinks(t, 'router', directOptions('tcp'), { directRetryMs: 10_000 })
  const key = randomBytes(32).toString('base64url')
  const tried: number[] = []
  let now = 0
  for (; now <= 36_000; now += 500) {
    router.links.tick(now)
    const before = router.failures.length
    router.links.heard(heartbeat('step', { address: `tcp://127.0.0.1:${port}`, key }))
    if (router.links.counts.opening === 0) continue
    tried.push(now)
    await until(() => router.failures.length > before)
  }
  t.same(tried, [0, 1000, 5000, 15_000, 25_000, 35_000])
  t.equal(attempts, tried.length)
})

await t.test('strangers are let go in a bounded time and number', async (t) => {
  const settings = { connectMs: 1000 }
  const { step } = await openConnected(t, directOptions('tcp'), settings)
  const { address = '' } = step.links.announced ?? {}
  const silent = Array.from({ length: MOST_PENDING }, () => openStranger(t, address))
  await until(() => silent.every(({ state }) => state.received.byteLength > 0))
  const more = openStranger(t, address)
  await until(() => more.state.isOver)
  t.equal(more.state.received.byteLength, 0)
  step.links.tick(0)
  step.links.tick(999)
  t.ok(silent.every(({ state }) => !state.isOver))
  step.links.tick(1000)
  await until(() => silent.every(({ state }) => state.isOver))
  t.same(step.links.members, ['router'])
})

await t.test('a stranger that says something else is let go at once', async (t) => {
  const { step } = await openConnected(t, directOptions('tcp'))
  const { address = '' } = step.links.announced ?? {}
  const said = [
    Buffer.from('GET / HTTP/1.1\r\n\r\n'),
    encodeFrameHead('message', 10),
    encodeFrameHead('handshake', 4_000_000),
    frameOf(Buffer.alloc(64)),
    frameOf(Buffer.alloc(70)),
  ]
  for (const bytes of said) {
    const { socket, state } = openStranger(t, address)
    socket.write(bytes)
    await until(() => state.isOver)
    t.ok(state.received.byteLength <= 40, 'no more than its random bytes')
  }
  t.same(step.failures, ['undefined: direct connection'], 'one line tells of all')
  t.same([step.links.members, step.heard], [['router'], []])
})

await t.test('what was heard of another connection opens none', async (t) => {
  const { step } = await openConnected(t, directOptions('tcp'))
  const { address = '', key = '' } = step.links.announced ?? {}
  const first = openStranger(t, address)
  await until(() => first.state.received.byteLength === 40)
  const { reply } = openHandshake(key, 'other', 'step').take(first.state.received.subarray(8))
  const hello = frameOf(reply ?? new Uint8Array())
  first.socket.write(hello)
  await until(() => step.links.members.includes('other'))
  const second = openStranger(t, address)
  second.socket.write(hello)
  await until(() => second.state.isOver)
  t.equal(first.state.isOver, false)
})

await t.test('a connection that is half open is given up, also if it takes nothing', async (t) => {
  const settings = { deadAfterMs: 3000, dataDeadMs: 10_000 }
  const { step, router, proxy, hear } = await openRelayed(t, settings)
  router.links.tick(0)
  router.links.tick(100)
  proxy.stall()
  router.links.tick(200)
  t.ok(router.alive.delete('step'), 'something of it has come')
  for (let now = 300; now < 3100; now += 100) router.links.tick(now)
  t.ok(router.links.of('step'), 'the pause of a healthy process')
  t.same([...router.alive], [], 'which is no sign of life')
  router.links.tick(3200)
  router.links.tick(3300)
  await until(() => router.heard.includes('step broken'))
  t.equal(router.links.of('step'), undefined)
  t.match(router.failures, ['step: silent for 3000 ms'])
  hear()
  router.links.tick(33_299)
  hear()
  t.equal(router.failures.length, 1, 'it is not tried again')
  proxy.resume()
  router.links.tick(33_300)
  hear()
  await until(() => router.links.members.length === 1)
  await until(() => step.links.of('router') !== undefined)
})

await t.test('memory is let go of a member that takes nothing', async (t) => {
  const { step } = await openConnected(t, directOptions('tcp'), { dataDeadMs: 10_000 })
  const { address = '', key = '' } = step.links.announced ?? {}
  const { socket, state } = openStranger(t, address)
  await until(() => state.received.byteLength === 40)
  const { reply } = openHandshake(key, 'slow', 'step').take(state.received.subarray(8))
  socket.pause()
  socket.write(frameOf(reply ?? new Uint8Array()))
  await until(() => step.links.of('slow') !== undefined)
  let written = 0
  for (let i = 0; i < 20; i += 1) {
    const done = (): void => void (written += 1)
    step.links.of('slow')?.sendChunk(Buffer.from('head'), tensorBytes(MAX_BYTES - 4), done)
  }
  await new Promise((resolve) => setTimeout(resolve, 50))
  t.ok(written < 20)
  for (let now = 0; now <= 11_000 && step.links.of('slow') !== undefined; now += 500) {
    socket.write(encodeFrameHead('alive', 0))
    await new Promise((resolve) => setTimeout(resolve, 5))
    step.links.tick(now)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  await until(() => written === 20)
  t.ok(step.heard.includes('slow broken'))
})

await t.test('a member that started anew is reached at once', async (t) => {
  const { step, router } = await openConnected(t, directOptions('tcp'))
  await step.links.close(1000)
  await until(() => router.links.members.length === 0)
  const next = openLinks(t, 'step', directOptions('tcp'))
  await next.links.listening
  router.links.heard(heartbeat('step', next.links.announced))
  await until(() => router.links.members.length === 1)
  t.same(next.links.members, ['router'])
})

await t.test('a router that connects anew takes the place of its former connection', async (t) => {
  const { step, router } = await openConnected(t, directOptions('tcp'))
  const again = openLinks(t, 'router', { kind: 'tcp' })
  again.links.heard(heartbeat('step', step.links.announced))
  await until(() => router.links.members.length === 0)
  await until(() => again.links.members.length === 1)
  t.same(step.links.members, ['router'])
})

await t.test('nothing is connected where only one end can, or they differ', async (t) => {
  const step = openLinks(t, 'step', directOptions('tls'))
  await step.links.listening
  const router = openLinks(t, 'router', { kind: 'tcp' })
  router.links.heard(heartbeat('step', step.links.announced))
  t.match(router.failures, [/^step: tls:\/\/127.0.0.1:\d+ is none of transport tcp$/])
  router.links.heard(heartbeat('step', step.links.announced))
  router.links.heard(heartbeat('old', undefined))
  t.equal(router.failures.length, 1, 'said once')
  t.same(router.links.members, [])
})

await t.test('only addresses of the own kind and directory are reached', async (t) => {
  const unix: DirectOptions = { kind: 'unix', directory: '/run/tutti' }
  const name = '0123456789abcdef.sock'
  const cases: [string, DirectOptions, unknown][] = [
    [`unix:/run/tutti/${name}`, unix, { path: `/run/tutti/${name}` }],
    [`unix:/run/${name}`, unix, undefined],
    [`unix:/run/tutti/../${name}`, unix, undefined],
    ['unix:/run/tutti/docker.sock', unix, undefined],
    ['tcp://h:1', unix, undefined],
    ['tcp://h:1', { kind: 'tcp' }, { host: 'h', port: 1 }],
    ['tcp://[::1]:1', { kind: 'tcp' }, { host: '::1', port: 1 }],
    ['tls://h:1', { kind: 'tcp' }, undefined],
    ['tcp://h', { kind: 'tcp' }, undefined],
    ['tcp://h:1/x', { kind: 'tcp' }, undefined],
    ['tcp://h:99999', { kind: 'tcp' }, undefined],
    ['nonsense', { kind: 'tcp' }, undefined],
    ['quic://h:1', { kind: 'tls' }, undefined],
  ]
  for (const [address, options, want] of cases) {
    t.same(parseDirectAddress(address, options), want, address)
  }
})

await t.test('a step says why it cannot listen', async (t) => {
  const taken = openLinks(t, 'step', directOptions('tcp'))
  await taken.links.listening
  const port = Number(new URL(taken.links.announced?.address ?? '').port)
  const listen = { host: '127.0.0.1', port }
  await t.rejects(openLinks(t, 'step', { kind: 'tls', listen }).links.listening, {
    reason: 'SETTING_INVALID',
    message: /cannot listen at 127.0.0.1:\d+: .*EADDRINUSE/,
  })
  const directory = t.testdir()
  chmodSync(directory, 0o755)
  await t.rejects(openLinks(t, 'step', { kind: 'unix', directory }).links.listening, {
    reason: 'SETTING_INVALID',
    message: /has mode 755, want 700/,
  })
  const file = join(directory, 'file')
  writeFileSync(file, '')
  await t.rejects(openLinks(t, 'step', { kind: 'unix', directory: file }).links.listening, {
    reason: 'SETTING_INVALID',
    message: /EEXIST/,
  })
})

await t.test('a socket of a process that was killed is removed, others stay', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'tutti-direct-'))
  t.teardown(() => rmSync(directory, { recursive: true }))
  const unix: DirectOptions = { kind: 'unix', directory }
  const step = openLinks(t, 'step', unix)
  await step.links.listening
  const [own = ''] = readdirSync(directory)
  t.equal(step.links.announced?.address, `unix:${join(directory, own)}`)
  for (const name of ['old.sock', 'young.sock']) {
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(join(directory, 'x'), resolve))
    // Closing removes the name that it listened at.
    renameSync(join(directory, 'x'), join(directory, name))
    await new Promise((resolve) => server.close(resolve))
  }
  for (const name of ['old.sock', own]) utimesSync(join(directory, name), 1, 1)
  const other = openLinks(t, 'step', unix, {}, 'other')
  await other.links.listening
  const left = readdirSync(directory)
  t.same([left.length, left.includes(own), left.includes('young.sock')], [3, true, true])
  t.notOk(left.includes('old.sock'))
})
