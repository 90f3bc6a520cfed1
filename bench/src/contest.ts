import { median, quantile } from './figures.ts'
import type { Ports, Send } from './forms.ts'
import type { LoadResult } from './http2-load.ts'
import { treeCpuMs } from './process-tree.ts'

/** A server that speaks KServe's protocol, with all its processes, or a program that does the same work. */
export interface Member extends Ports {
  readonly name: string
  readonly pid: number
  /** The load of a program that is no server: does so many requests. */
  readonly run?: (o: { inFlight: number; requests: number }) => Promise<LoadResult>
}

/** One turn of a member. */
export interface Turn {
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** Processor time of all processes of the server, for each request. */
  readonly cpuMs: number
  /** Processor time of the client, for each request. */
  readonly clientCpuMs: number
}

/** A load for all members. */
export interface Load {
  readonly send: Send
  readonly inFlight: number
  readonly rounds: number
  /** How long a turn should take, in milliseconds. */
  readonly turnMs: number
}

const FEWEST = 4
/** Requests of a turn of the warm-up, over those in flight. */
const WARM_UP_ROUNDS = 2

/**
 * The members take turns under the same load, in another order each round, after a short turn of each that says how many
 * requests fill a turn.
 *
 * @returns the turns of each member, by round.
 */
export async function contest<T extends Member>(
  members: readonly T[],
  load: Load,
): Promise<ReadonlyMap<T, readonly Turn[]>> {
  const turns = new Map<T, Turn[]>()
  const requests = new Map<T, number>()
  for (const member of members) {
    const fewest = Math.max(load.inFlight * 2, FEWEST)
    const { perSecond } = await takeTurn(member, load, fewest)
    const fill = Math.round((perSecond * load.turnMs) / 1000)
    requests.set(member, Math.max(fewest, fill))
    turns.set(member, [])
  }
  for (let round = 0; round < load.rounds; round += 1) {
    const order = round % 2 === 0 ? members : members.toReversed()
    for (const member of order) {
      turns.get(member)?.push(await takeTurn(member, load, requests.get(member) ?? FEWEST))
    }
  }
  return turns
}

/** Sends each member requests for so long, one member after the other. */
export async function warmUp(
  members: readonly Member[],
  load: Pick<Load, 'send' | 'inFlight'>,
  warmUpMs: number,
): Promise<void> {
  for (const member of members) {
    const end = performance.now() + warmUpMs
    while (performance.now() < end) await takeTurn(member, load, load.inFlight * WARM_UP_ROUNDS)
  }
}

async function takeTurn(
  member: Member,
  load: Pick<Load, 'send' | 'inFlight'>,
  requests: number,
): Promise<Turn> {
  const cpuBefore = treeCpuMs(member.pid)
  const clientBefore = process.cpuUsage()
  const { inFlight } = load
  const o = { inFlight, requests }
  const result = await (member.run?.(o) ?? load.send(member, o))
  const client = process.cpuUsage(clientBefore)
  return {
    perSecond: result.perSecond,
    p50Ms: median(result.latenciesMs),
    p99Ms: quantile(result.latenciesMs, 0.99),
    cpuMs: (treeCpuMs(member.pid) - cpuBefore) / requests,
    clientCpuMs: (client.user + client.system) / 1000 / requests,
  }
}

/** The medians of a member's turns. */
export function middle(turns: readonly Turn[]): Turn {
  const of = (read: (turn: Turn) => number): number => median(turns.map(read))
  return {
    perSecond: of((turn) => turn.perSecond),
    p50Ms: of((turn) => turn.p50Ms),
    p99Ms: of((turn) => turn.p99Ms),
    cpuMs: of((turn) => turn.cpuMs),
    clientCpuMs: of((turn) => turn.clientCpuMs),
  }
}

/** One figure of a member over that of another, round by round. */
export function ratios(
  turns: readonly Turn[],
  others: readonly Turn[],
  read: (turn: Turn) => number,
): readonly number[] {
  return turns.map((turn, i) => read(turn) / read(others[i] ?? turn))
}
