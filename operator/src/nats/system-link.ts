import { connect, Empty, jwtAuthenticator, type NatsConnection, RequestStrategy } from 'nats'
import { z } from 'zod'
import { createNkey, type Nkey, signClaims } from './nkey.ts'

/**
 * A connection to the servers as their administrator. Calls throw if the connection is lost or a server does not answer in 5 s.
 */
export interface SystemLink {
  /** Lists the public keys of the accounts that a server knows, the system account included. */
  listAccounts(): Promise<readonly string[]>
  /** Adds or changes an account. Connections that the account no longer allows end. @param jwt - the signed account. */
  updateAccount(jwt: string): Promise<void>
  /** Removes accounts and ends their connections. @param removal - the signed request of buildRemoval. */
  removeAccounts(removal: string): Promise<void>
  /** Makes every server read its configuration and certificates again. @returns the number of servers. */
  reloadServers(): Promise<number>
  /**
   * Reads the figures of the servers. It waits at most a second.
   *
   * @param most - number of answers after which it waits no longer.
   */
  readServers(most: number): Promise<readonly ServerFigures[]>
  close(): Promise<void>
}

/** The figures that a server gives of itself (`/varz`). Totals are since its start. */
export const ServerFigures = z.object({
  server_name: z.string(),
  /** Resident memory, bytes. */
  mem: z.number(),
  /** GOMEMLIMIT, bytes; without one, as much as there can be. */
  gomemlimit: z.number().default(Number.POSITIVE_INFINITY),
  connections: z.number(),
  subscriptions: z.number(),
  /** Connections that were ended because they did not read. */
  slow_consumers: z.number(),
  in_msgs: z.number(),
  out_msgs: z.number(),
  in_bytes: z.number(),
  out_bytes: z.number(),
})
export type ServerFigures = z.infer<typeof ServerFigures>

export interface SystemLinkOptions {
  /** Addresses of the servers, `tls://HOST:PORT`. */
  readonly urls: readonly string[]
  /** Authority of the servers' certificates, PEM. No other is trusted. */
  readonly authorities: string
  /** Key of the system account. */
  readonly system: Nkey
  /** Time now, in milliseconds since the epoch. */
  readonly nowMs: number
  /** Callback when the connection has ended, also after `close`. */
  readonly onLost: () => void
}

const ANSWER_MS = 5_000
/** Time to wait for the answers of all servers, because nothing says how many servers there are. */
const GATHER_MS = 1_000
/** Lifetime of a connection's user; the next connection has a new user. */
const USER_LIFETIME_MS = 86_400_000

const SUBJECTS = {
  list: '$SYS.REQ.CLAIMS.LIST',
  update: '$SYS.REQ.CLAIMS.UPDATE',
  remove: '$SYS.REQ.CLAIMS.DELETE',
  ping: '$SYS.REQ.SERVER.PING',
  figures: '$SYS.REQ.SERVER.PING.VARZ',
  reload: (server: string) => `$SYS.REQ.SERVER.${server}.RELOAD`,
} as const

const Answer = z.object({
  server: z.object({ id: z.string().regex(/^\w+$/) }).optional(),
  data: z.unknown().optional(),
  error: z.object({ description: z.string().default('no reason given') }).optional(),
})
type Answer = z.infer<typeof Answer>

/** Connects to one of the servers as a new user of the system account. The caller closes it. @throws if no server lets it in. */
export async function openSystemLink(o: SystemLinkOptions): Promise<SystemLink> {
  const user = createNkey('user')
  const connection = await connect({
    servers: o.urls.map((url) => url.replace(/^tls:\/\//, '')),
    tls: { ca: o.authorities },
    authenticator: jwtAuthenticator(userJwt(o, user.publicKey), Buffer.from(user.seed)),
    name: 'tutti-operator',
    timeout: ANSWER_MS,
    // The keeper of the accounts connects again, and then looks at everything.
    reconnect: false,
    ignoreClusterUpdates: true,
  })
  void connection.closed().then(o.onLost)
  return toLink(connection)
}

function toLink(connection: NatsConnection): SystemLink {
  const ask = async (subject: string, payload: string): Promise<Answer> => {
    const { data } = await connection.request(subject, payload, { timeout: ANSWER_MS })
    const answer = Answer.parse(JSON.parse(Buffer.from(data).toString()))
    if (answer.error === undefined) return answer
    throw new Error(`the NATS server refused ${subject}: ${answer.error.description}`)
  }
  /** Gathers the answers of all servers. */
  async function* gather(subject: string, most: number): AsyncGenerator<Answer> {
    const options = { strategy: RequestStrategy.Count, maxWait: GATHER_MS, maxMessages: most }
    for await (const { data } of await connection.requestMany(subject, Empty, options)) {
      yield Answer.parse(JSON.parse(Buffer.from(data).toString()))
    }
  }
  return {
    listAccounts: async () => z.array(z.string()).parse((await ask(SUBJECTS.list, '')).data ?? []),
    updateAccount: async (jwt) => void (await ask(SUBJECTS.update, jwt)),
    removeAccounts: async (removal) => void (await ask(SUBJECTS.remove, removal)),
    reloadServers: async () => {
      const servers = new Set<string>()
      for await (const { server } of gather(SUBJECTS.ping, 64)) {
        if (server !== undefined) servers.add(server.id)
      }
      for (const server of servers) await ask(SUBJECTS.reload(server), '')
      return servers.size
    },
    readServers: async (most) => {
      const found: ServerFigures[] = []
      for await (const { data } of gather(SUBJECTS.figures, most)) {
        found.push(ServerFigures.parse(data))
      }
      return found
    },
    close: async () => await connection.close(),
  }
}

function userJwt({ system, nowMs }: SystemLinkOptions, sub: string): string {
  const servers = ['PING', 'PING.VARZ', '*.RELOAD'].map((name) => `$SYS.REQ.SERVER.${name}`)
  const pub = { allow: ['$SYS.REQ.CLAIMS.*', ...servers] }
  const grant = { pub, sub: { allow: ['_INBOX.>'] }, subs: -1, data: -1, payload: -1 }
  return signClaims(system, {
    sub,
    name: 'operator',
    iat: Math.floor(nowMs / 1000),
    exp: Math.floor((nowMs + USER_LIFETIME_MS) / 1000),
    nats: { ...grant, allowed_connection_types: ['STANDARD'], type: 'user', version: 2 },
  })
}
