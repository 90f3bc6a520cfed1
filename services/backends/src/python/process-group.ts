import { ServeError } from '@tutti/errors'
import type { Placement } from '../placement.ts'
import type { ForkedProcess } from './zygote.ts'

/** A process that lives, or is being forked. */
interface Generation {
  /** Processes that no instance has yet. */
  readonly channels: Promise<ForkedProcess[]>
  /** Resolves when the instances that came before have started, or have failed to. */
  turn: Promise<void>
  /** Error of the first one that failed to start. */
  failure?: ServeError
}

/**
 * Instances that share one process; mostly it is a single one. The first instance to start forks the process, with a channel for
 * each. The others join one after the other, because the first `initialize` of a model may prepare things for all. When the
 * process ends, the next instance to start forks another one.
 */
export class ProcessGroup {
  readonly #fork: () => Promise<ForkedProcess[]>
  #live: Generation | undefined

  /** @param fork - forks a process with a channel for each instance. */
  constructor(fork: () => Promise<ForkedProcess[]>) {
    this.#fork = fork
  }

  /**
   * Starts an instance on its channel of the process. An instance has one channel of each process, and starts again only after
   * the process has ended.
   *
   * @param load - resolves when the instance has started. If it rejects, it has ended the process.
   * @throws ServeError of `load`, for this instance or an earlier one; ENGINE_STOPPED if the process ended otherwise.
   */
  async start<T>(load: (process: ForkedProcess) => Promise<T>): Promise<T> {
    this.#live ??= this.#begin()
    const live = this.#live
    const before = live.turn
    const { promise, resolve } = Promise.withResolvers<void>()
    live.turn = promise
    try {
      await before
      if (live.failure !== undefined) throw live.failure
      const process = (await live.channels).shift()
      if (process === undefined) throw hasEnded()
      return await load(process)
    } catch (error) {
      live.failure ??= ServeError.from(error)
      throw error
    } finally {
      resolve()
    }
  }

  #begin(): Generation {
    const channels = this.#fork()
    const live: Generation = { channels, turn: Promise.resolve() }
    const ended = channels.then(
      ([first]) => first?.ended,
      () => undefined,
    )
    void ended.then(() => this.#end(live))
    return live
  }

  async #end(live: Generation): Promise<void> {
    if (this.#live === live) this.#live = undefined
    const left = await live.channels.catch(() => [])
    for (const { frames } of left.splice(0)) frames.destroy()
  }
}

/** Placement of an instance, with the group that gives it its process. */
export interface GroupedPlacement extends Placement {
  readonly processes: ProcessGroup
}

/**
 * Assigns instances to processes: one process for each instance. If they share, the instances of a group on one device have one
 * process.
 *
 * @param fork - forks a process. It gets the name of the process for the log, made of its first and last instance, and the number
 * of instances.
 */
export function groupByProcess(
  placements: readonly Placement[],
  isShared: boolean,
  fork: (name: string, instances: number) => Promise<ForkedProcess[]>,
): readonly GroupedPlacement[] {
  const keyOf = ([index, placement]: readonly [number, Placement]): unknown => {
    const { group, kind, deviceId, policy } = placement
    return isShared ? JSON.stringify([group, kind, deviceId, policy]) : index
  }
  const grouped: GroupedPlacement[] = []
  for (const members of Map.groupBy(placements.entries(), keyOf).values()) {
    const [first = '', ...rest] = members.map(([, { name }]) => name)
    const name = [first, ...rest.slice(-1)].join('..')
    const processes = new ProcessGroup(() => fork(name, members.length))
    for (const [index, placement] of members) grouped[index] = { ...placement, processes }
  }
  return grouped
}

function hasEnded(): ServeError {
  return new ServeError('ENGINE_STOPPED', 'the process that the instance shares has ended')
}
