import { cpuUs, median, printTable } from './figures.ts'
import type { Ratios } from './history.ts'
import type { BenchServer } from './servers.ts'

/** So many requests in flight, and so many in a round. */
export interface Level {
  readonly inFlight: number
  readonly requests: number
}

export interface SmallRounds {
  /** Before each ratio's name in history.json. */
  readonly name: string
  readonly tutti: BenchServer
  /** Does nothing but answer. */
  readonly empty: BenchServer
  readonly levels: readonly Level[]
  /** Sends requests. @returns how many were answered in a second. */
  readonly load: (server: BenchServer, level: Level) => Promise<number>
}

/** A load before the rounds, until code is compiled. */
const WARM_UP: Level = { inFlight: 64, requests: 20_000 }
/** Loads of gRPC on one connection; a round of each takes about a second. */
export const GRPC_LEVELS = [
  { inFlight: 1, requests: 4000 },
  { inFlight: 8, requests: 12_000 },
  { inFlight: 64, requests: 20_000 },
] as const

export const ROUNDS = 7

interface Sample {
  readonly perSecond: number
  readonly cpuUsPerRequest: number
}

interface Round {
  readonly tutti: Sample
  readonly empty: Sample
}

const HEADINGS = ['in flight', 'tutti req/s', 'empty req/s', 'ratio', 'worst', 'best']

/** Lets two servers answer the same small requests in turn, and prints a row for each level. */
export async function compareSmall(o: SmallRounds): Promise<Ratios> {
  const rows = [[...HEADINGS, 'cpu us', 'empty cpu us', 'cpu ratio']]
  const all: Record<string, number> = {}
  for (const server of [o.tutti, o.empty]) await o.load(server, WARM_UP)
  for (const level of o.levels) {
    const rounds: Round[] = []
    for (let round = 0; round < ROUNDS; round += 1) {
      rounds.push({
        tutti: await sample(o, o.tutti, level),
        empty: await sample(o, o.empty, level),
      })
    }
    rows.push(toRow(level.inFlight, rounds))
    const ratios = rounds.map((round) => round.tutti.perSecond / round.empty.perSecond)
    all[`${o.name}, ${level.inFlight} in flight: requests/s`] = median(ratios)
  }
  printTable(rows)
  return all
}

/** How many requests a server of `compareSmall` gets. */
export function requestsOf({ levels }: Pick<SmallRounds, 'levels'>): number {
  return levels.reduce((sum, { requests }) => sum + ROUNDS * requests, WARM_UP.requests)
}

async function sample(o: SmallRounds, server: BenchServer, level: Level): Promise<Sample> {
  const cpuBefore = cpuUs(server.pid)
  const perSecond = await o.load(server, level)
  return { perSecond, cpuUsPerRequest: (cpuUs(server.pid) - cpuBefore) / level.requests }
}

function toRow(inFlight: number, rounds: readonly Round[]): string[] {
  const ratios = rounds.map((round) => round.tutti.perSecond / round.empty.perSecond)
  const cpu = rounds.map((round) => round.tutti.cpuUsPerRequest / round.empty.cpuUsPerRequest)
  const whole = (read: (round: Round) => number) => median(rounds.map(read)).toFixed(0)
  return [
    String(inFlight),
    whole((round) => round.tutti.perSecond),
    whole((round) => round.empty.perSecond),
    median(ratios).toFixed(2),
    Math.min(...ratios).toFixed(2),
    Math.max(...ratios).toFixed(2),
    whole((round) => round.tutti.cpuUsPerRequest),
    whole((round) => round.empty.cpuUsPerRequest),
    median(cpu).toFixed(2),
  ]
}
