import { type NatsServer, startNatsServer } from '@tutti/chassis/testing'
import { connect, credsAuthenticator, Events } from 'nats'
import { createNkey, type Nkey, signClaims } from '../nkey.ts'
import type { CredentialIssuer } from '../tenancy-keys.ts'

/** The part of a test that runs a function when the test ends. */
export interface Teardown {
  teardown(close: () => Promise<unknown>): void
}

/** The keys of an administrator whose servers have one account for all tenants. */
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

/** Builds the configuration of external servers: one account whose users the signing key signs. */
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
 * @param files - texts of the files by name.
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
 * Connects a client that can test its permissions. It closes when the test ends.
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
    /** Publishes to the subject and returns whether the server permits it. */
    mayPublish: (subject: string): Promise<boolean> => {
      connection.publish(subject, 'x')
      return isTaken('publish', subject)
    },
    /** Subscribes to the subject and returns whether the server permits it. */
    maySubscribe: async (subject: string): Promise<boolean> => {
      const subscription = connection.subscribe(subject, { callback: () => {} })
      const taken = await isTaken('subscription', subject)
      if (taken) subscription.unsubscribe()
      return taken
    },
  }
}
