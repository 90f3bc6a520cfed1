import { type NatsServer, startNatsServer } from '@tutti/chassis/testing'
import { connect, credsAuthenticator, Events } from 'nats'
import { createNkey, type Nkey, signClaims } from '../nkey.ts'
import type { CredentialIssuer } from '../tenancy-keys.ts'

/** A test that closes what was opened when it ends. */
export interface Teardown {
  teardown(close: () => Promise<unknown>): void
}

/** The keys of somebody who runs servers with one account for all tenants. */
export interface ExternalKeys extends CredentialIssuer {
  readonly operator: Nkey
}

export function createExternalKeys(): ExternalKeys {
  const account = createNkey('account').publicKey
  return { operator: createNkey('operator'), account, signing: createNkey('account') }
}

const NO_LIMITS = { subs: -1, data: -1, payload: -1, conn: -1 }

function about(sub: string) {
  return { sub, name: 'external', iat: 1 }
}

/** The lines of their configuration: the account, whose users any of its signing keys signs. */
export function externalConfig({ operator, account, signing }: ExternalKeys): string {
  const accountJwt = signClaims(operator, {
    ...about(account),
    nats: { limits: NO_LIMITS, signing_keys: [signing.publicKey], type: 'account', version: 2 },
  })
  const nats = { type: 'operator', version: 2 } as const
  return [
    `operator: ${signClaims(operator, { ...about(operator.publicKey), nats })}`,
    'resolver: MEMORY',
    `resolver_preload: ${JSON.stringify({ [account]: accountJwt })}`,
  ].join('\n')
}

/**
 * Starts a nats-server that includes the files of the operator, as the chart's does.
 *
 * @param files - by name.
 * @param o.block - more lines of the server's own configuration.
 */
export async function startTenantServer(
  t: Teardown,
  files: Readonly<Record<string, string>>,
  o: { readonly port?: number; readonly block?: string } = {},
): Promise<NatsServer> {
  const { block = '', ...rest } = o
  const config = `${block}\ninclude 'tenancy.conf'`
  const server = await startNatsServer({ ...rest, config, files })
  t.teardown(() => server.stop())
  return server
}

/**
 * Connects a client that tells what it may do there.
 *
 * @param credentials - the text of a credentials file.
 * @param authorities - PEM; absent: without TLS.
 */
export async function connectTenant(
  t: Teardown,
  url: string,
  credentials: string,
  inboxPrefix = '_INBOX',
  authorities?: string,
) {
  const authenticator = credsAuthenticator(Buffer.from(credentials))
  const connection = await connect({
    servers: url.replace(/^tls:\/\//, ''),
    authenticator,
    reconnect: false,
    inboxPrefix,
    ...(authorities !== undefined && { tls: { ca: authorities } }),
  })
  t.teardown(() => connection.close())
  const refused = new Set<string>()
  const watching = async (): Promise<void> => {
    for await (const { type, permissionContext } of connection.status()) {
      if (type === Events.Error && permissionContext !== undefined) {
        refused.add(`${permissionContext.operation} ${permissionContext.subject}`)
      }
    }
  }
  void watching()
  const isTaken = async (operation: string, subject: string): Promise<boolean> => {
    await connection.flush()
    // The answer to the flush comes behind a refusal, but the statuses are read in their own turn.
    await new Promise((resolve) => setImmediate(resolve))
    return !refused.delete(`${operation} ${subject}`)
  }
  return {
    connection,
    /** Whether the server takes what is published there. */
    mayPublish: (subject: string): Promise<boolean> => {
      connection.publish(subject, 'x')
      return isTaken('publish', subject)
    },
    /** Whether the server takes a subscription. */
    maySubscribe: async (subject: string): Promise<boolean> => {
      const subscription = connection.subscribe(subject, { callback: () => {} })
      const taken = await isTaken('subscription', subject)
      if (taken) subscription.unsubscribe()
      return taken
    },
  }
}
