import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findNatsServer, freePort, type StartedProcess, startProcess } from '@tutti/chassis/testing'
import { connect, credsAuthenticator, Events, type NatsConnection } from 'nats'

/** A nats-server that includes the files of the operator, as the chart's does. */
export interface TenantServer {
  readonly url: string
  /** What it logged. */
  readonly process: StartedProcess
  /** Gives it other files and has it read them, without a restart; resolves when it has. */
  reload(files: TenantFiles): Promise<void>
}

/** Files of the Secret `tutti-nats-server`, by name. */
export type TenantFiles = Readonly<Record<string, string>>

/** What is closed when a test ends. */
export interface Teardown {
  teardown(close: () => Promise<unknown>): void
}

/** @param block - more lines of the server's own configuration. */
export async function startTenantServer(
  t: Teardown,
  files: TenantFiles,
  o: { readonly port?: number; readonly block?: string } = {},
): Promise<TenantServer> {
  const path = findNatsServer()
  if (path === undefined) throw new Error('no nats-server is found; see withoutNatsServer')
  const folder = await mkdtemp(join(tmpdir(), 'tutti-tenants-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const port = o.port ?? (await freePort())
  const write = async (texts: TenantFiles): Promise<void> => {
    await Promise.all(
      Object.entries(texts).map(([name, text]) => writeFile(join(folder, name), text)),
    )
  }
  await write({
    ...files,
    'nats.conf': `listen: "127.0.0.1:${port}"\n${o.block ?? ''}\ninclude 'tenancy.conf'\n`,
  })
  const started = await startProcess(path, ['--config', join(folder, 'nats.conf')], {
    readyWhen: (line) => line.includes('Server is ready'),
  })
  t.teardown(() => started.stop())
  let reloads = 0
  return {
    url: `nats://127.0.0.1:${port}`,
    process: started,
    reload: async (texts) => {
      await write(texts)
      started.kill('SIGHUP')
      reloads += 1
      await started.waitForLine((line) => RELOADED.test(line) && countOf(started.lines) >= reloads)
    },
  }
}

const RELOADED = /Reloaded server configuration/

function countOf(lines: readonly string[]): number {
  return lines.filter((line) => RELOADED.test(line)).length
}

/** A client of the server, and what it may do there. */
export interface TenantClient {
  readonly connection: NatsConnection
  /** Whether the server takes what is published there. */
  mayPublish(subject: string): Promise<boolean>
  /** Whether the server takes a subscription. */
  maySubscribe(subject: string): Promise<boolean>
}

/** @param credentials - the text of a credentials file. */
export async function connectTenant(
  t: Teardown,
  url: string,
  credentials: string,
  inboxPrefix = '_INBOX',
): Promise<TenantClient> {
  const authenticator = credsAuthenticator(Buffer.from(credentials))
  const connection = await connect({ servers: url, authenticator, reconnect: false, inboxPrefix })
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
    mayPublish: (subject) => {
      connection.publish(subject, 'x')
      return isTaken('publish', subject)
    },
    maySubscribe: async (subject) => {
      const subscription = connection.subscribe(subject, { callback: () => {} })
      const taken = await isTaken('subscription', subject)
      if (taken) subscription.unsubscribe()
      return taken
    },
  }
}
