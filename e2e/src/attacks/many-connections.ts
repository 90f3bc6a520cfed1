import { Agent } from 'node:http'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { restCall } from '../rest-call.ts'
import type { Target } from '../serving.ts'
import type { Random } from './random.ts'

/** As long as nothing ends them. */
const STAY_MS = 1000
const SCRAPERS = 30

/** First bytes of a connection: nothing, a TLS handshake, a wrong protocol, or half of the right one. */
const BEGINNINGS = [
  '',
  '\x16\x03\x01\x02\x00',
  'GET / HTTP/1.1\r\n',
  'PRI * HTTP/2.0\r\n\r\nSM',
  '\0',
]

/** Opens very many connections to a port, more than the server keeps, says a few bytes on each, and leaves. */
export async function openMany(target: Target, { pick, oneOf }: Random): Promise<void> {
  const port = oneOf([target.grpcPort, target.httpPort, target.metricsPort])
  const [count, beginning] = [1 + pick(oneOf([10, 100, 700])), oneOf(BEGINNINGS)]
  const sockets: Socket[] = []
  for (let i = 0; i < count; i += 1) {
    const socket = connect(port, '127.0.0.1')
    // To be cut off is what an attacker expects.
    socket.on('error', () => {}).resume()
    if (beginning !== '') socket.write(beginning, 'latin1')
    sockets.push(socket)
    if (i % 50 === 0) await sleep(1)
  }
  await sleep(pick(STAY_MS))
  for (const socket of sockets) socket.resetAndDestroy()
}

/** Scrapes metrics on many connections at once. @returns what is wrong with an answer. */
export async function scrapeMany(
  { metricsPort }: Target,
  { pick }: Random,
): Promise<string | undefined> {
  const times = 1 + pick(5)
  const scrapers = Array.from({ length: SCRAPERS }, async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const got: number[] = []
    try {
      while (got.length < times) {
        const { status } = await restCall(metricsPort, 'GET', '/metrics', { agent })
        got.push(status)
      }
    } catch {
      // Beyond its bound of connections a server ends the oldest ones.
    }
    agent.destroy()
    return got
  })
  const statuses = (await Promise.all(scrapers)).flat()
  // One who is slow to ask gets 408.
  const wrong = statuses.find((status) => status !== 200 && status !== 408)
  return wrong === undefined ? undefined : `metrics: HTTP ${wrong}`
}
