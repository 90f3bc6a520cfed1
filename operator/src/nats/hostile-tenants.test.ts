// needs: nats
import { readFileSync } from 'node:fs'
import { connect as connectPlain } from 'node:net'
import { startProcess, withoutNatsServer } from '@tutti/chassis/testing'
import * as fc from 'fast-check'
import { connect, credsAuthenticator, Empty, type Msg, type NatsConnection } from 'nats'
import t, { type Test } from 'tap'
import { type AccountWorld, openAccountWorld } from './testing/account-world.ts'

const WITH_NATS = { skip: withoutNatsServer() }
const MIBIBYTE = 2 ** 20

/** Connections of the hostile namespace: as many as it may have. */
const CONNECTIONS = 28
const LIMITS = { connections: CONNECTIONS, subscriptions: 64 }

async function start(t: Test, environment: Readonly<Record<string, string>> = {}) {
  const world = await openAccountWorld(t, { limits: LIMITS, environment })
  for (const namespace of ['victim', 'hostile']) await world.tenancy.ensureTenant(namespace)
  await world.tenancy.ensureServers()
  const server = await world.start(0)
  await world.tenancy.ensureServers()
  return { world, server }
}

function enter(world: AccountWorld, namespace: string): Promise<NatsConnection> {
  const { credentials, authorities } = world.credential(namespace)
  return connect({
    servers: world.urls.map((url) => url.replace('tls://', '')),
    authenticator: credsAuthenticator(Buffer.from(credentials)),
    tls: { ca: authorities },
    reconnect: false,
    inboxPrefix: `tutti.${namespace}.inbox`,
  })
}

/** Asks and answers all the time; whatever goes wrong, or comes from others, is an error. */
async function openVictim(t: Test, world: AccountWorld) {
  const [asker, answerer] = [await enter(world, 'victim'), await enter(world, 'victim')]
  t.teardown(() => Promise.all([asker.close(), answerer.close()]))
  const strange: string[] = []
  answerer.subscribe('tutti.victim.>', {
    callback: (_error, message) => {
      if (message.subject === 'tutti.victim.ask') message.respond(message.data)
      else if (!message.subject.startsWith('tutti.victim.inbox.')) strange.push(message.subject)
    },
  })
  await answerer.flush()
  let answers = 0
  const ask = async (): Promise<void> => {
    const question = Buffer.from(`question ${answers}`)
    const { data } = await asker.request('tutti.victim.ask', question, { timeout: 10_000 })
    if (!question.equals(data)) throw new Error(`got ${String(data)}, want ${String(question)}`)
    answers += 1
  }
  return { ask, strange, answers: () => answers }
}

/** The most that the process has had in memory, bytes. */
function peakOf(pid: number): number {
  const [, kibibytes] = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kibibytes) * 1024
}

/** Subscribes with many connections, says so, and is then stopped by its parent. */
const DEAF = `
const { connect, credsAuthenticator } = require(process.argv[1])
const { urls, credentials, authorities, count } = JSON.parse(process.argv[2])
void (async () => {
  for (let made = 0; made < count; made += 1) {
    const authenticator = credsAuthenticator(Buffer.from(credentials))
    const connection = await connect({ servers: urls, authenticator, tls: { ca: authorities } })
    connection.subscribe('tutti.hostile.flood', { callback: () => {} })
    await connection.flush()
  }
  console.log('all subscribed')
})()`

await t.test(
  'subscribers that do not read cost a bounded memory, and no other namespace a request',
  WITH_NATS,
  async (t) => {
    const { world, server } = await start(t, { GOMEMLIMIT: '640MiB', GOGC: '400' })
    const victim = await openVictim(t, world)
    const module = import.meta.resolve('nats').replace('file://', '')
    const urls = world.urls.map((url) => url.replace('tls://', ''))
    const what = JSON.stringify({ ...world.credential('hostile'), urls, count: CONNECTIONS - 2 })
    const deaf = await startProcess(process.execPath, ['-e', DEAF, module, what], {
      readyWhen: (line) => line.includes('all subscribed'),
      readyTimeoutMs: 120_000,
    })
    t.teardown(() => deaf.stop('SIGKILL'))
    deaf.kill('SIGSTOP')
    const publisher = await enter(world, 'hostile')
    t.teardown(() => publisher.close())
    const message = Buffer.alloc(MIBIBYTE - 512)
    const over = new AbortController()
    const asking = (async () => {
      while (!over.signal.aborted) await victim.ask()
    })()
    for (let sent = 0; sent < 60; sent += 1) {
      publisher.publish('tutti.hostile.flood', message)
      await publisher.flush()
    }
    over.abort()
    await asking
    t.ok(victim.answers() > 0, `${victim.answers()} answers meanwhile`)
    const peak = peakOf(server.pid)
    t.comment(`peak ${Math.round(peak / MIBIBYTE)} MiB`)
    t.ok(peak < (CONNECTIONS * 16 + 256) * MIBIBYTE, `${peak} bytes`)
  },
)

/** A subscription that is refused is told so here, too. */
function respond(error: unknown, message: Msg): void {
  if (error === null) message.respond(Empty)
}

/** Actions that a tenant may try, with what its credential gives it. */
const ACTIONS: Readonly<Record<string, (hostile: NatsConnection, world: AccountWorld) => unknown>> =
  {
    'many connections': async (_, world) => {
      const made = Array.from({ length: 6 }, () => enter(world, 'hostile').catch(() => undefined))
      for (const one of await Promise.all(made)) await one?.close()
    },
    'many subscriptions': (hostile) => {
      for (let count = 0; count < 100; count += 1) hostile.subscribe(`tutti.hostile.${count}.>`)
    },
    'a message that is too large': (hostile) => {
      hostile.publish('tutti.hostile.x', Buffer.alloc(2 * MIBIBYTE))
    },
    'much for itself': (hostile) => {
      for (let count = 0; count < 8; count += 1) hostile.subscribe('tutti.hostile.self')
      for (let count = 0; count < 4; count += 1) {
        hostile.publish('tutti.hostile.self', Buffer.alloc(MIBIBYTE / 4))
      }
    },
    'to listen to all': (hostile) => {
      for (const subject of ['>', '*.>', 'tutti.>', 'tutti.*.ask', '$SYS.>', '_INBOX.>', '_R_.>']) {
        hostile.subscribe(subject, { callback: () => {} })
      }
    },
    'to take part': (hostile) => {
      hostile.subscribe('tutti.victim.ask', { queue: 'q', callback: respond })
      hostile.publish('tutti.victim.ask', 'x', { reply: 'tutti.victim.stolen' })
    },
    'to have others answered': (hostile) => {
      hostile.subscribe('tutti.hostile.ask', { callback: respond })
      hostile.publish('tutti.hostile.ask', 'x', { reply: 'tutti.victim.stolen' })
      hostile.publish('tutti.victim.stolen', 'x')
    },
    'to administer': (hostile) => {
      for (const subject of ['CLAIMS.UPDATE', 'CLAIMS.DELETE', 'CLAIMS.LIST', 'SERVER.PING.KICK']) {
        hostile.publish(`$SYS.REQ.${subject}`, 'x', { reply: 'tutti.hostile.inbox.x' })
      }
    },
    'no NATS at all': async (_, world) => {
      const port = Number(world.urls[0]?.split(':').at(-1))
      const socket = connectPlain(port, '127.0.0.1').on('error', () => {})
      await new Promise((resolve) => {
        socket.once('data', () => socket.end(Buffer.alloc(4096, 'CONNECT {}\r\nPUB > 9\r\n')))
        socket.on('close', resolve)
      })
    },
  }

await t.test('whatever a hostile tenant mixes, the other goes on', WITH_NATS, async (t) => {
  const { world, server } = await start(t, { GOMEMLIMIT: '640MiB', GOGC: '400' })
  const victim = await openVictim(t, world)
  const action = fc.constantFrom(...Object.keys(ACTIONS))
  await fc.assert(
    fc.asyncProperty(fc.array(action, { minLength: 1, maxLength: 5 }), async (actions) => {
      const hostile = await enter(world, 'hostile')
      for (const name of actions) {
        try {
          await ACTIONS[name]?.(hostile, world)
        } catch {
          // The server has ended the connection, or the library knows what it would do.
        }
        await victim.ask()
      }
      await victim.ask()
      await hostile.close()
      t.same(victim.strange, [])
    }),
    { numRuns: 100 },
  )
  t.ok(peakOf(server.pid) < (CONNECTIONS * 16 + 256) * MIBIBYTE)
  t.ok(server.lines.every((line) => !/panic|fatal/i.test(line)))
})
