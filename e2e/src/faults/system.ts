import { cp, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { findNatsServer, until } from '@tutti/chassis/testing'
import { InferenceClient } from '@tutti/protocol/client'
import type { Test } from 'tap'
import { ask, describe } from '../processes/asking.ts'
import { type DirectKind, directFlags, directKind } from '../processes/direct-flags.ts'
import { Sight } from '../processes/sight.ts'
import { ROOT } from '../serving.ts'
import { BASIC, tempFolder } from '../temp-repository.ts'
import { PYTHON_FLAGS } from '../triton-client.ts'
import { countedQuestion, readCounts } from './counted.ts'
import { SMALL_DISK } from './disk.ts'
import type { Host, Network } from './network.ts'
import { command } from './own-namespaces.ts'
import { brokerAt, type Place, tuttiAt } from './place.ts'

/** Where the repository, the temporary files and the file of executions of a system are. */
interface Folders {
  readonly repository: string
  readonly temporary: string
  readonly counted: string
}

/** How models are served. */
export type Way = 'one process' | 'processes'

/** A system that serves in one way, and can be harmed. */
export interface System {
  readonly way: Way
  /** Kind of the connections that routers and steps have beside NATS. */
  readonly direct: DirectKind
  readonly folders: Folders
  /** `broker`, `router-0`, `router-1`, `step-0` and `step-1`; or `server`. */
  place(name: string): Place
  /** Where clients ask. */
  readonly targets: readonly Host[]
  /** Host of a client with a machine of its own. */
  readonly client: Host
  /** Waits until all is as it was, for every client. */
  settled(): Promise<void>
  /** Waits until each router has its direct connections, where there are any: faults should meet them. */
  connected(): Promise<void>
  /** How often each request was executed so far, by its number. */
  counts(): Promise<ReadonlyMap<number, number>>
}

/** Its name in reports. */
export function reportOf({ way, direct }: Pick<System, 'way' | 'direct'>): string {
  return direct === 'off' ? way : `${way} over ${direct}`
}

const COUNTING = `${ROOT}model_repository/.variants/fixtures/counting`
const BROKER_NAME = 'broker.faults'
/** The names of this process's machines; tests write it. */
export const HOSTS_FILE = '/etc/hosts'

/** `tutti serve`. @param client - a host that it may use. */
export async function startOneProcess(t: Test, network: Network, client: Host): Promise<System> {
  const host = await network.addHost('server')
  const folders = await makeFolders(t)
  const args = ['serve', `--model-repository=${folders.repository}`, ...POLLING, ...PYTHON_FLAGS]
  const server = tuttiAt(host, args, environmentOf(folders))
  await server.start()
  t.teardown(() => server.stop())
  return toSystem({
    way: 'one process',
    direct: 'off',
    folders,
    client,
    places: { server },
    asked: ['server'],
    sights: { areRight: () => true, areDirect: () => true },
  })
}

/** A broker, two routers and two steps; the second step is behind a relay. @param client - a host that it may use. */
export async function startProcesses(t: Test, network: Network, client: Host): Promise<System> {
  const folders = await makeFolders(t)
  const hosts = {
    broker: await network.addHost('broker'),
    'router-0': await network.addHost('router-0'),
    'router-1': await network.addHost('router-1'),
    'step-0': await network.addHost('step-0'),
    'step-1': await network.addHost('step-1', { isRelayed: true }),
  }
  const configFile = join(await tempFolder(t), 'nats.conf')
  await writeFile(configFile, `listen: "${hosts.broker.address}:4222"\n`)
  await nameBroker(t, hosts.broker.address)
  const direct = directKind()
  const member = (name: keyof typeof hosts, role: 'router' | 'step', flags: readonly string[]) => {
    const nats = `--nats=nats://${BROKER_NAME}:4222`
    const address = `${hosts[name].address}:${DIRECT_PORT}`
    const over = directFlags(role, { kind: direct, directory: DIRECT_DIRECTORY, address })
    const args = [role, nats, `--model-repository=${folders.repository}`, ...flags, ...over]
    return tuttiAt(hosts[name], args, environmentOf(folders))
  }
  const members = {
    'router-0': member('router-0', 'router', []),
    'router-1': member('router-1', 'router', []),
    'step-0': member('step-0', 'step', PYTHON_FLAGS),
    'step-1': member('step-1', 'step', PYTHON_FLAGS),
  }
  const broker = brokerAt(hosts.broker, findNatsServer() ?? '', configFile)
  const places: Readonly<Record<string, Place>> = { broker, ...members }
  t.teardown(() => Promise.all(Object.values(places).map((place) => place.stop())))
  await broker.start()
  await Promise.all(Object.values(members).map((place) => place.start()))
  return toSystem({
    way: 'processes',
    direct,
    folders,
    client,
    places,
    asked: ['router-0', 'router-1'],
    sights: watchSights(Object.values(members)),
  })
}

const DIRECT_PORT = 9443
/** In what this process has mounted there: paths of sockets are short. */
const DIRECT_DIRECTORY = '/run/direct'

/** Views that members have of one another now. */
interface Sights {
  /** Whether each of them sees all others. */
  areRight(): boolean
  /** Whether each router is connected to all steps directly. */
  areDirect(): boolean
}

function watchSights(members: readonly Place[]): Sights {
  const sights = new Map<string, Sight>()
  const every = (claim: (sight: Sight, ids: ReadonlySet<string>) => boolean): boolean => {
    const running = members.map((place) => place.running)
    const ids = new Set(running.map(({ id }) => id))
    return running.every((one) => {
      const sight = sights.get(one.id) ?? new Sight(one)
      sights.set(one.id, sight)
      return claim(sight, ids)
    })
  }
  return {
    areRight: () => every((sight, ids) => sight.isRight(ids)),
    areDirect: () => every((sight, ids) => sight.isDirect(ids)),
  }
}

/** So that a fault of the repository is met within seconds. */
const POLLING = ['--model-control-mode=poll', '--repository-poll-secs=1']

interface Parts extends Pick<System, 'way' | 'direct' | 'folders' | 'client'> {
  readonly places: Readonly<Record<string, Place>>
  /** The names of those that clients ask. */
  readonly asked: readonly string[]
  readonly sights: Sights
}

function toSystem({ places, asked, sights, ...parts }: Parts): System {
  const place = (name: string): Place => {
    const found = places[name]
    if (found === undefined) throw new Error(`there is no ${name} in ${parts.way}`)
    return found
  }
  const targets = asked.map((name) => place(name).host)
  const problem = async (): Promise<string> => {
    if (!sights.areRight()) return 'some member does not see the others'
    const problems = await Promise.all(targets.map(whyNotServing))
    return problems.find((one) => one !== '') ?? ''
  }
  return {
    ...parts,
    place,
    targets,
    settled: async () => {
      const state = { problem: '' }
      await until(
        () => `all is as it was; but ${state.problem}${logsOf(places)}`,
        async () => {
          state.problem = await problem()
          return state.problem === ''
        },
      )
    },
    connected: async () => {
      if (parts.direct === 'off') return
      await until(
        () => `routers are connected to steps directly${logsOf(places)}`,
        () => sights.areDirect(),
      )
    },
    counts: () => readCounts(parts.folders.counted),
  }
}

const PATIENCE_MS = 5000

/** On a connection of its own: an old one may be dead without knowing it. */
async function whyNotServing({ address, name }: Host): Promise<string> {
  const client = new InferenceClient({ address: `${address}:8001` })
  try {
    const outcome = await ask(client, countedQuestion({ id: 0 }), { timeoutMs: PATIENCE_MS })
    return outcome.kind === 'right' ? '' : `${name}: ${describe(outcome)}`
  } finally {
    client.close()
  }
}

function logsOf(places: Readonly<Record<string, Place>>): string {
  return Object.entries(places)
    .map(([name, { process }]) => `\n${name}:\n${process.lines.slice(-15).join('\n')}`)
    .join('')
}

async function makeFolders(t: Test): Promise<Folders> {
  const folder = await tempFolder(t)
  const repository = join(folder, 'repository')
  const temporary = join(folder, 'temporary')
  await Promise.all([mkdir(repository), mkdir(temporary)])
  await command('mount', '-t', 'tmpfs', '-o', SMALL_DISK, 'tmpfs', temporary)
  t.teardown(() => command('umount', '--lazy', temporary))
  await cp(COUNTING, repository, { recursive: true })
  await cp(`${BASIC}/versioned`, join(repository, 'versioned'), { recursive: true })
  return { repository, temporary, counted: join(folder, 'counted') }
}

function environmentOf({ temporary, counted }: Folders): Readonly<Record<string, string>> {
  return { TMPDIR: temporary, TUTTI_COUNTED: counted }
}

/** Only for this process's own mounts. */
async function nameBroker(t: Test, address: string): Promise<void> {
  const file = join(await tempFolder(t), 'hosts')
  await writeFile(file, hostsText(address))
  await command('mount', '--bind', file, HOSTS_FILE)
}

/** Builds the text of HOSTS_FILE; without an address the broker's name is unknown. */
export function hostsText(brokerAddress?: string): string {
  const localhost = '127.0.0.1 localhost\n'
  return brokerAddress === undefined ? localhost : `${localhost}${brokerAddress} ${BROKER_NAME}\n`
}
