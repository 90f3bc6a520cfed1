import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLogger, systemClock } from '@tutti/chassis'
import { freePort, type NatsServer, startNatsServer } from '@tutti/chassis/testing'
import { SECRET, type Secret, type Stored } from '@tutti/kube'
import { memoryClient } from '../../testing/memory-client.ts'
import { AccountTenancy, CERTIFICATE_FILES } from '../account-tenancy.ts'
import { type AccountLimits, clusterFile } from '../server-config.ts'
import { NATS_SECRETS } from '../tenancy-secrets.ts'
import { CREDENTIAL_FILES } from '../tenant-secret.ts'
import type { Teardown } from './tenant-server.ts'

export type AccountWorld = Awaited<ReturnType<typeof openAccountWorld>>

/**
 * Opens an AccountTenancy over Secrets in memory. `start` starts real NATS servers, configured as by the chart. Everything is
 * closed when the test ends.
 */
export async function openAccountWorld(
  t: Teardown,
  o: {
    readonly servers?: number
    readonly limits?: AccountLimits
    readonly maxPending?: string
    readonly environment?: Readonly<Record<string, string>>
  } = {},
) {
  const folder = await mkdtemp(join(tmpdir(), 'tutti-accounts-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const ports = await Promise.all(Array.from({ length: o.servers ?? 1 }, async () => freePort()))
  const routes = await Promise.all(ports.map(async () => freePort()))
  const clusterHosts = ports.length > 1 ? routes.map((port) => `localhost:${port}`) : []
  const client = memoryClient()
  const lines: string[] = []
  const log = createLogger({
    level: 'debug',
    name: 'test',
    destination: { write: (line) => void lines.push(line) },
  })
  const secretOf = (namespace: string, name: string): Stored<Secret> =>
    client.objects.get(`Secret ${namespace}/${name}`) as Stored<Secret>
  const textOf = (namespace: string, name: string, key: string): string =>
    Buffer.from(secretOf(namespace, name).data?.[key] ?? '', 'base64').toString()
  const urls = ports.map((port) => `tls://localhost:${port}`)
  let lost = 0
  let passedMs = 0
  const clock = { ...systemClock, now: () => passedMs }
  const restarted = (): AccountTenancy =>
    new AccountTenancy({
      client,
      namespace: 'tutti-system',
      urls,
      clusterHosts,
      prefix: 'tutti',
      lifetimeMs: 86_400_000,
      limits: o.limits ?? { connections: 96, subscriptions: 1024 },
      secrets: () => [...client.objects.values()] as Stored<Secret>[],
      onLost: () => {
        lost += 1
      },
      clock,
      log,
    })
  const start = async (index: number): Promise<NatsServer> => {
    const files = Object.entries(secretOf('tutti-system', NATS_SECRETS.server).data ?? {})
    const place = join(folder, `server-${index}-`)
    for (const name of Object.values(CERTIFICATE_FILES)) {
      await writeFile(place + name, textOf('tutti-system', NATS_SECRETS.server, name))
    }
    const tls = `cert_file: "${place}tls.crt", key_file: "${place}tls.key"`
    const cluster = `name: tutti, listen: "127.0.0.1:${routes[index]}", include '${clusterFile(ports.length)}'`
    const server = await startNatsServer({
      port: Number(ports[index]),
      config: [
        `server_name: s${index}`,
        `tls { ${tls} }`,
        `resolver: { type: full, dir: "${place}accounts", allow_delete: true, hard_delete: true, interval: "1s" }`,
        `max_pending: ${o.maxPending ?? '16MB'}`,
        ...(ports.length > 1
          ? [`cluster { ${cluster}\n tls { ${tls}, ca_file: "${place}ca.crt" } }`]
          : []),
        "include 'tenancy.conf'",
      ].join('\n'),
      files: Object.fromEntries(
        files.map(([name, text]) => [name, Buffer.from(text, 'base64').toString()]),
      ),
      ...(o.environment && { env: o.environment }),
    })
    running.set(index, server)
    t.teardown(() => server.stop())
    return server
  }
  const running = new Map<number, NatsServer>()
  const tenancy = restarted()
  t.teardown(() => tenancy.close())
  return {
    tenancy,
    client,
    lines,
    urls,
    folder,
    /** Makes a new AccountTenancy over the same Secrets, as a restarted operator has it. The caller closes it. */
    restarted,
    start,
    /** Replaces a server by one in a new pod, which has its Secret but no accounts on disk. */
    replace: async (index: number): Promise<NatsServer> => {
      await running.get(index)?.stop()
      await rm(join(folder, `server-${index}-accounts`), { recursive: true, force: true })
      return await start(index)
    },
    /** Advances the monotonic clock, which otherwise stands still. */
    pass: (ms: number): void => {
      passedMs += ms
    },
    get lost() {
      return lost
    },
    /** Returns the credential of a namespace, as its pods have it. */
    credential: (namespace: string) => ({
      credentials: textOf(namespace, NATS_SECRETS.credentials, CREDENTIAL_FILES.credentials),
      authorities: textOf(namespace, NATS_SECRETS.credentials, CREDENTIAL_FILES.authorities),
    }),
    textOf,
    /** Deletes the credential Secret of a namespace, as kubectl would. */
    remove: (namespace: string) =>
      client.remove(SECRET, { namespace, name: NATS_SECRETS.credentials }),
  }
}
