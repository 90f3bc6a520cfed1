// Attacks of a hostile tenant from one of its pods: a program of its own, which says what it got and goes on until it is ended.
import { readFileSync } from 'node:fs'
import { connect as connectHttp2 } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { dirname, join } from 'node:path'
import { argv } from 'node:process'
import { setTimeout as delay } from 'node:timers/promises'
import { connect as connectNats, credsAuthenticator, type NatsConnection } from 'nats'

/** Arguments: addresses to try, as `ip:port,ip:port`; the address of its own router; the URL of NATS, and the file of its credential, beside that of the authorities. */
const [, , targets = '', router = '', natsUrl = '', credentials = ''] = argv

/** Below what any server of the chart takes. */
const MESSAGE_BYTES = 64 * 1024
const MESSAGES = 960
const SUBSCRIBERS = 24
const subscribersWait = Promise.withResolvers<void>()

const counts: Record<string, number> = {}
const count = (what: string): void => {
  counts[what] = (counts[what] ?? 0) + 1
}

await Promise.all([
  ...targets.split(',').map(attackPort),
  attackRouter(),
  holdSubscribers(),
  publishMuch(),
  connectOften(),
  sayNow(),
])

/** Once for each address, so that the test knows which ports are open. */
function reached(address: string): void {
  counts[`reached ${address}`] = 1
}

/** For ever, with a pause; what fails is tried again. */
async function again(what: string, act: () => Promise<void>): Promise<never> {
  for (;;) {
    try {
      await act()
      count(what)
    } catch (error) {
      count(`${what}, in vain: ${error instanceof Error ? error.message : String(error)}`)
      await delay(100)
    }
  }
}

/** Connections, many at a time, that say half of something or nothing. */
async function attackPort(address: string): Promise<never> {
  const [host = '', port = ''] = address.split(':')
  return await again(`attacked ${address}`, async () => {
    const sockets = await Promise.all(Array.from({ length: 64 }, () => openSocket(host, +port)))
    reached(address)
    for (const [i, socket] of sockets.entries()) {
      if (i % 3 === 0)
        socket.write('POST /v2/models/ens_chain/infer HTTP/1.1\r\ncontent-length: 9\r\n')
      if (i % 3 === 1) socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
    }
    await delay(1000)
    for (const socket of sockets) socket.destroy()
  })
}

function openSocket(host: string, port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port })
    const timer = setTimeout(() => socket.destroy(new Error('no answer')), 5000)
    socket.once('connect', () => {
      clearTimeout(timer)
      resolve(socket)
    })
    socket.on('error', (error) => {
      // The rules drop what they do not let through, so whoever refuses was reached.
      if (error.message.includes('ECONNREFUSED')) reached(`${host}:${port}`)
      reject(error)
    })
  })
}

/** Its own router: thousands of calls that begin and send nothing. */
async function attackRouter(): Promise<never> {
  return await again('streams to its own router', async () => {
    const session = connectHttp2(`http://${router}`)
    await new Promise((resolve, reject) => {
      session.once('connect', resolve)
      session.on('error', reject)
    })
    for (let i = 0; i < 1024; i += 1) {
      const path = '/inference.GRPCInferenceService/ModelStreamInfer'
      session
        .request({ ':method': 'POST', ':path': path, 'content-type': 'application/grpc' })
        .on('error', () => {})
    }
    await delay(2000)
    session.destroy()
  })
}

async function openNats(): Promise<NatsConnection> {
  return await connectNats({
    servers: natsUrl.replace(/^tls:\/\//, ''),
    authenticator: credsAuthenticator(readFileSync(credentials)),
    tls: { ca: readFileSync(join(dirname(credentials), 'ca.crt'), 'utf8') },
    reconnect: false,
    timeout: 20_000,
  })
}

/** As openNats; again until the server has room for one more, and time for its handshake. */
async function enterNats(): Promise<NatsConnection> {
  for (;;) {
    try {
      return await openNats()
    } catch {
      count('entered NATS, in vain')
      await delay(100)
    }
  }
}

/** Finds a subject that its credential lets it publish and subscribe, as its own JWT says. */
function ownSubject(): string {
  const text = readFileSync(credentials, 'utf8')
  const [, payload = ''] = /BEGIN NATS USER JWT-+\s+[^.]+\.([^.]+)\./.exec(text) ?? []
  const { nats } = JSON.parse(Buffer.from(payload, 'base64url').toString())
  const [allowed = '>'] = nats.sub?.allow ?? []
  return String(allowed).replace(/>$/, 'flood').replaceAll('*', 'x')
}

/** Subscribers that never read: the server has to keep for each what it may have pending. */
async function holdSubscribers(): Promise<never> {
  return await again('slow subscribers', async () => {
    const clients: NatsConnection[] = []
    while (clients.length < SUBSCRIBERS) {
      const client = await enterNats()
      clients.push(client)
      client.subscribe(ownSubject(), { callback: () => {} })
      await client.flush()
      const socket = ['protocol', 'transport', 'socket'].reduce(fieldOf, client)
      if (socket !== null && typeof socket === 'object' && 'pause' in socket) pause(socket)
    }
    count('slow subscribers wait')
    subscribersWait.resolve()
    await Promise.race([delay(20_000), Promise.all(clients.map((client) => client.closed()))])
    await Promise.all(clients.map((client) => client.close()))
  })
}

function fieldOf(object: unknown, name: string): unknown {
  return typeof object === 'object' && object !== null ? Reflect.get(object, name) : undefined
}

function pause(socket: object): void {
  const act = Reflect.get(socket, 'pause')
  if (typeof act === 'function') Reflect.apply(act, socket, [])
}

async function publishMuch(): Promise<never> {
  return await again('60 MiB published', async () => {
    const client = await enterNats()
    const closed = client.closed().then((error) => {
      throw error ?? new Error('closed')
    })
    closed.catch(() => {})
    const bytes = new Uint8Array(MESSAGE_BYTES)
    for (let i = 1; i <= MESSAGES; i += 1) {
      client.publish(ownSubject(), bytes)
      if (i % 100 === 0 || i === MESSAGES) await Promise.race([client.flush(), closed])
    }
    await client.close()
  })
}

/** Takes what is left of its connections, so the subscribers come first. */
async function connectOften(): Promise<never> {
  await subscribersWait.promise
  return await again('200 connections to NATS', async () => {
    const opened = await Promise.allSettled(Array.from({ length: 200 }, openNats))
    const clients = opened.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
    for (const client of clients) for (let i = 0; i < 100; i += 1) client.subscribe(ownSubject())
    await delay(5000)
    await Promise.all(clients.map((client) => client.close()))
    if (clients.length < opened.length) throw new Error('some were refused')
  })
}

async function sayNow(): Promise<never> {
  for (;;) {
    await delay(1000)
    // oxlint-disable-next-line no-console -- the test reads it
    console.log(JSON.stringify(counts))
  }
}
