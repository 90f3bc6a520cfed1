import { readdir, readFile } from 'node:fs/promises'
import { type StartedProcess, startProcess } from '@tutti/chassis/testing'
import { startTutti } from '../serving.ts'
import type { Host } from './network.ts'

/** A process that runs at a place: the broker, a router, a step or `tutti serve`. */
export interface Running {
  readonly process: StartedProcess
  /** On the broker; '' for what has none. */
  readonly id: string
}

/** How it is started for a fault. */
export interface Manner {
  /** Variables that the environment has beside those that it always has. */
  readonly env?: Readonly<Record<string, string>>
  /** Words before the command. */
  readonly before?: readonly string[]
}

/** A machine, and what runs on it: one process after the other, with the same addresses. */
export class Place {
  readonly host: Host
  readonly #start: (manner: Manner) => Promise<Running>
  #running: Running | undefined

  constructor(host: Host, start: (manner: Manner) => Promise<Running>) {
    this.host = host
    this.#start = start
  }

  get running(): Running {
    if (this.#running === undefined) throw new Error(`nothing runs at ${this.host.name}`)
    return this.#running
  }

  get process(): StartedProcess {
    return this.running.process
  }

  async start(manner: Manner = {}): Promise<void> {
    this.#running = await this.#start(manner)
  }

  /** Ends what runs there and starts it anew, as whatever supervises it would. */
  async restart(signal: 'SIGTERM' | 'SIGKILL', manner: Manner = {}): Promise<void> {
    await this.process.stop(signal, 60_000)
    await this.start(manner)
  }

  /** The processes of the Python models that run there; without the one that they are forked from. */
  async instances(): Promise<readonly number[]> {
    const parents = await childrenOf(this.process.pid)
    return (await Promise.all(parents.map(childrenOf))).flat()
  }

  async stop(): Promise<void> {
    await this.#running?.process.stop('SIGKILL')
  }
}

/** Starts nats-server there. */
export function brokerAt(host: Host, path: string, configFile: string): Place {
  return new Place(host, async () => {
    const [enter = '', ...into] = host.inside
    const process = await startProcess(enter, [...into, path, '--config', configFile], {
      readyWhen: (line) => line.includes('Server is ready'),
    })
    return { process, id: '' }
  })
}

/** Starts a command of `tutti` there, on its usual ports. */
export function tuttiAt(
  host: Host,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Place {
  return new Place(host, async (manner) => {
    const within = [...host.inside, ...(manner.before ?? [])]
    const { serving, ready } = await startTutti(args, { env: { ...env, ...manner.env }, within })
    return { process: serving.process, id: idOf(ready) }
  })
}

function idOf(ready: Readonly<Record<string, unknown>>): string {
  const id = ready['replica'] ?? ready['router']
  return typeof id === 'string' ? id : ''
}

async function childrenOf(pid: number): Promise<readonly number[]> {
  const tasks = `/proc/${pid}/task`
  // It may end at any moment.
  const names = await readdir(tasks).catch(() => [])
  const files = names.map((task) => `${tasks}/${task}/children`)
  const lists = await Promise.all(files.map((file) => readFile(file, 'utf8').catch(() => '')))
  return lists.flatMap((list) => list.split(' ').filter(Boolean).map(Number))
}
