import { type Health, logServing, type Running, toDrainMs, withCauses } from '@tutti/chassis'
import { type BrokerMember, memberFamilies } from './broker-members.ts'
import type { JsonAnswers, MetricsServer } from './metrics-server.ts'
import { openMetricsServer } from './open-metrics-server.ts'
import { openProcessBase, type ProcessBase, type ProcessBaseOptions } from './process-base.ts'
import { checkAnswered, openServers, type ServersOptions } from './servers.ts'

export interface ServeProcessOptions extends ProcessBaseOptions {
  readonly health: Health
  /** Callback that runs last, when the process closes or could not start. */
  readonly close?: () => Promise<void>
}

/** The sources of the state that a process shows to probes and scrapes. */
export interface ProcessState {
  /** Members on the broker, which drain at the same time as the servers. */
  readonly members?: readonly BrokerMember[]
  /** Function that lists further causes for which the process is not ready. */
  readonly causes?: () => readonly string[]
  /** See MetricsServerOptions. */
  readonly answers?: JsonAnswers
}

/** The parts of a process that its program makes. */
export interface ServedContent
  extends Pick<
    ServersOptions,
    | 'backend'
    | 'edge'
    | 'page'
    | 'identities'
    | 'guardControl'
    | 'decorators'
    | 'observers'
    | 'traceSettings'
    | 'memory'
  > {
  /** Function that makes the parts refuse new requests; requests in flight go on. */
  readonly stop: () => void
  /** Models of this process, drained last, after servers and members. */
  readonly models?: { drain(): Promise<void>; readonly isBusy: boolean }
  /** Names of the process for the log, beside its ports. */
  readonly fields?: Readonly<Record<string, string | number>>
}

/** Starts to answer probes and scrapes, for a process that takes long before it serves. */
export type OpenProbes = (state: ProcessState) => Promise<void>

/**
 * Runs a process that serves: opens the shared parts, has `compose` make the parts of the program, and opens the servers over
 * them.
 *
 * @param compose - makes the program's parts. They register what they open at `shared.opened`.
 * @throws ServeError as `compose` does; SETTING_INVALID if a port is taken. Nothing stays open then.
 */
export async function serveProcess(
  o: ServeProcessOptions,
  compose: (shared: ProcessBase, openProbes: OpenProbes) => Promise<ServedContent>,
): Promise<Running> {
  const opened = new AsyncDisposableStack()
  opened.defer(() => o.close?.())
  const stopping = new AbortController()
  const close = async (): Promise<void> => {
    stopping.abort()
    await opened.disposeAsync()
  }
  try {
    const shared = await openProcessBase(o, { opened, stopping: stopping.signal })
    return await serve(o, { shared, compose, stop: () => stopping.abort(), close })
  } catch (error) {
    await close()
    throw error
  }
}

async function serve(
  { flags, log, health: own }: ServeProcessOptions,
  o: {
    readonly shared: ProcessBase
    readonly compose: Parameters<typeof serveProcess>[1]
    readonly stop: () => void
    readonly close: () => Promise<void>
  },
): Promise<Running> {
  const { clock, metrics, opened } = o.shared
  let state: ProcessState = {}
  const causes = (): readonly string[] => [
    ...(state.members ?? []).flatMap((member) => member.causes()),
    ...(state.causes?.() ?? []),
  ]
  const health = withCauses(own, causes)
  let metricsServer: MetricsServer | undefined
  const openProbes = async (given: ProcessState): Promise<void> => {
    state = given
    const { members = [], answers } = given
    if (members.length > 0) metrics.addFamilies(() => memberFamilies(members))
    metricsServer = await openMetricsServer({
      flags,
      metrics,
      health,
      log,
      ...(answers && { answers }),
    })
    opened.defer(async () => metricsServer?.close())
  }
  const { models, stop, fields, ...parts } = await o.compose(o.shared, openProbes)
  const servers = await openServers({ ...parts, flags, metrics, metricsServer, health, clock, log })
  opened.defer(() => servers.close())
  opened.defer(logServing({ log, clock, fields: { ...servers.ports, ...fields }, causes }))
  return {
    stopAccepting: () => {
      o.stop()
      servers.stopAccepting()
      stop()
    },
    // Other members learn first, so that they send nothing more while what they sent is finished.
    drain: async ({ signal }) => {
      const [isAnswered] = await Promise.all([
        servers.drain({ timeoutMs: toDrainMs(flags) }),
        ...(state.members ?? []).map((member) => member.drain({ signal })),
      ])
      await models?.drain()
      checkAnswered(isAnswered)
    },
    close: o.close,
    isBusy: () => models?.isBusy ?? false,
  }
}
