import { join } from 'node:path'
import {
  type FaultProxy,
  type NatsServer,
  type NatsServerOptions,
  startFaultProxy,
  startNatsServer,
  until,
  withoutNatsServer,
} from '@tutti/chassis/testing'
import type { Heartbeat } from '@tutti/protocol'
import type { Test } from 'tap'
import { LOOPBACK, type Serving, type StartOptions, startTutti } from '../serving.ts'
import { BASIC, tempFolder } from '../temp-repository.ts'
import { type DirectKind, type DirectPlace, directFlags, directKind } from './direct-flags.ts'
import { type MemberWatch, watchMembers } from './member-watch.ts'

/** Why tests over a broker cannot run here, or false. */
export const SKIP = withoutNatsServer()

export { BASIC }

const REPOSITORY = 'default'

/** A router or step that runs as a process of its own. */
export interface Member extends Serving {
  /** Its id on the broker. */
  readonly id: string
}

export interface MemberOptions extends Pick<StartOptions, 'env' | 'program' | 'within'> {
  /** Folders of models. For a router: where its ensembles are. */
  readonly repositories?: readonly string[]
  /** Models that a step serves; all if absent. */
  readonly models?: readonly string[]
  /** Between the process and the broker. */
  readonly proxy?: FaultProxy
  readonly flags?: readonly string[]
}

export type Harness = Awaited<ReturnType<typeof startHarness>>

export interface HarnessOptions extends NatsServerOptions {
  /** Kind of the direct connections of all members; what TUTTI_DIRECT names if absent. */
  readonly direct?: DirectKind | undefined
}

/** Starts a nats-server with its default limits; routers and steps around it follow by calls. All of it ends with the test. */
export async function startHarness(
  t: Test,
  { direct: kind = directKind(), ...o }: HarnessOptions = {},
) {
  const directory = join(await tempFolder(t), 'direct')
  const direct = { kind, directory, address: '127.0.0.1:0' }
  const broker = await startNatsServer(o)
  t.teardown(() => broker.stop())
  const watch = await watchMembers(broker.url, { prefix: 'tutti', repository: REPOSITORY })
  t.teardown(() => watch.close())
  const around = { broker, watch, direct }
  return {
    broker,
    watch,
    direct: kind,
    step: (options: MemberOptions = {}) => startMember(t, around, 'step', options),
    router: (options: MemberOptions = {}) => startMember(t, around, 'router', options),
    proxy: async (): Promise<FaultProxy> => {
      const proxy = await startFaultProxy({ port: broker.port })
      t.teardown(() => proxy.close())
      return proxy
    },
  }
}

/** Parts that all members of a test share. */
interface HarnessParts {
  readonly broker: NatsServer
  readonly watch: MemberWatch
  readonly direct: DirectPlace
}

async function startMember(
  t: Test,
  { broker, watch, direct }: HarnessParts,
  role: Heartbeat['role'],
  o: MemberOptions,
): Promise<Member> {
  const url = o.proxy === undefined ? broker.url : `nats://127.0.0.1:${o.proxy.port}`
  // Another build may be one that does not know the flags.
  const flags = o.program === undefined ? directFlags(role, direct) : []
  const starting = startTutti([...memberArguments(role, url, o), ...flags], o)
  // Not after the wait: another one that does not start ends the test while this one is starting.
  t.teardown(async () => {
    // A member that did not start has ended, and the test has the error.
    const started = await starting.catch(() => undefined)
    await started?.serving.process.stop('SIGKILL')
  })
  const { serving, ready } = await starting
  const id = String(ready['replica'] ?? ready['router'])
  await until(`${id} is heard`, () => watch.latest(id))
  return { ...serving, id }
}

function memberArguments(role: Heartbeat['role'], url: string, o: MemberOptions): string[] {
  const repositories = o.repositories ?? [BASIC]
  return [
    role,
    `--nats=${url}`,
    `--repository-name=${REPOSITORY}`,
    ...repositories.map((path) => `--model-repository=${path}`),
    ...(o.models ?? []).map((model) => `--model=${model}`),
    ...LOOPBACK,
    ...(o.flags ?? []),
  ]
}
