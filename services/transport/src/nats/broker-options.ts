import type { BrokerOptions } from '../endpoints.ts'
import { readBrokerFiles } from './broker-files.ts'
import { type BrokerNaming, SETTING_NAMES } from './broker-naming.ts'

const SCHEMES = new Set(['nats:', 'tls:'])
const WAYS = ['user', 'token', 'nkeyFile', 'credentialsFile'] as const

/**
 * Checks what can be checked before anything is sent; files are read anew at every connect, here they are only tried.
 *
 * @param naming - how errors name a field and what they are.
 * @throws ServeError that names the field: no or odd servers, two ways to sign in, half of a pair, a file that cannot be read
 * or does not hold what it should.
 */
export function checkBrokerOptions(
  broker: BrokerOptions,
  naming: BrokerNaming = SETTING_NAMES,
): void {
  checkServers(broker.servers, naming)
  checkWays(broker, naming)
  checkPairs(broker, naming)
  readBrokerFiles(broker, naming)
}

/** True if the connection must be encrypted. */
export function wantsTls(broker: BrokerOptions): boolean {
  return broker.tls !== undefined || broker.servers.some((server) => server.startsWith('tls://'))
}

function checkServers(servers: readonly string[], { refusal }: BrokerNaming): void {
  if (servers.length === 0) throw refusal('servers', 'got none, want at least one nats://HOST:PORT')
  for (const server of servers) {
    const url = URL.canParse(server) ? new URL(server) : undefined
    const isWhole = url !== undefined && SCHEMES.has(url.protocol) && url.hostname !== ''
    const shown = withoutSecret(server)
    if (!isWhole || url.pathname + url.search + url.hash !== '') {
      throw refusal('servers', `"${shown}", want nats://HOST:PORT or tls://HOST:PORT`)
    }
    if (url.username !== '' || url.password !== '') {
      const want = `want them in ${WAYS_TO_SAY}`
      throw refusal('servers', `"${shown}" holds credentials, ${want}`)
    }
  }
}

const WAYS_TO_SAY = 'a user and a file with its password, or another file'

/** Hides what stands before an `@`: it may be a secret. */
function withoutSecret(server: string): string {
  return server.replace(/^([a-z]*:\/\/)?.*@/, '$1[redacted]@')
}

/** Checks that there is one way to sign in at most: of two, chance would decide which one counts. */
function checkWays(broker: BrokerOptions, { name, refusal }: BrokerNaming): void {
  const [first, second] = WAYS.filter((way) => broker[way] !== undefined)
  if (first === undefined || second === undefined) return
  throw refusal(second, `got it beside ${name(first)}, want one way to sign in`)
}

function checkPairs(broker: BrokerOptions, { name, refusal }: BrokerNaming): void {
  const { certFile, keyFile } = broker.tls ?? {}
  const pairs = [
    [
      ['user', broker.user],
      ['password', broker.password],
    ],
    [
      ['tls.certFile', certFile],
      ['tls.keyFile', keyFile],
    ],
  ] as const
  for (const [[first, one], [second, other]] of pairs) {
    if ((one === undefined) === (other === undefined)) continue
    const [here, missing] = one === undefined ? [second, first] : [first, second]
    throw refusal(here, `got it alone, want ${name(missing)} too`)
  }
}
