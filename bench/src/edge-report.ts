import { median, printTable } from './figures.ts'

/** The plain client, the least client, the transport alone, and a whole step, each with a broker of its own. */
const CONTENDERS = ['raw', 'wire', 'edge', 'step'] as const
/** A plain socket, and the transport over each kind of direct connection. */
const DIRECT_CONTENDERS = ['socket', 'tcp', 'unix', 'tls'] as const
export type Contender = (typeof CONTENDERS)[number] | (typeof DIRECT_CONTENDERS)[number]

/** The results of one round of one contender. */
export interface Sample {
  readonly p50: number
  readonly p99: number
  /** Both ways together. */
  readonly mbPerSecond: number
  /** Processor time of caller, answerer and broker, and the broker's part of it. */
  readonly cpuMsPerMb: number
  readonly brokerMsPerMb: number
}

/** The contenders one after the other. */
export type Round = Readonly<Record<Contender, Sample>>

/** A size with its rounds. */
export interface Measured {
  readonly name: string
  readonly rounds: readonly Round[]
}

function middle(rounds: readonly Round[], read: (round: Round) => number): number {
  return median(rounds.map(read))
}

/** A ratio: median of the rounds, lowest and highest. */
function ratio(rounds: readonly Round[], read: (round: Round) => number): string {
  const ratios = rounds.map(read)
  const [low, high] = [Math.min(...ratios), Math.max(...ratios)]
  return `${median(ratios).toFixed(2)} (${low.toFixed(2)} to ${high.toFixed(2)})`
}

function latency(rounds: readonly Round[], of: Contender): string {
  const p50 = middle(rounds, (round) => round[of].p50)
  return `${p50.toFixed(2)} / ${middle(rounds, (round) => round[of].p99).toFixed(2)}`
}

function cost(rounds: readonly Round[], of: Contender): string {
  const rate = middle(rounds, (round) => round[of].mbPerSecond).toFixed(0)
  const cpu = middle(rounds, (round) => round[of].cpuMsPerMb).toFixed(2)
  return `${rate}; ${cpu} [${middle(rounds, (round) => round[of].brokerMsPerMb).toFixed(2)}]`
}

/** Prints the times of calls. */
export function printLatency(measured: readonly Measured[]): void {
  console.log('\none call in flight, ms p50 / p99, and p50 over another')
  printTable([
    ['', ...CONTENDERS, 'edge over raw', 'edge over wire', 'step over raw'],
    ...measured.map(({ name, rounds }) => [
      name,
      ...CONTENDERS.map((of) => latency(rounds, of)),
      ratio(rounds, (round) => round.edge.p50 / round.raw.p50),
      ratio(rounds, (round) => round.edge.p50 / round.wire.p50),
      ratio(rounds, (round) => round.step.p50 / round.raw.p50),
    ]),
  ])
}

/** Prints what calls cost in processor time. */
export function printCost(what: string, measured: readonly Measured[]): void {
  console.log(`\n${what}: MB/s; cpu ms per MB, the broker's part in brackets`)
  printTable([
    [
      '',
      ...CONTENDERS,
      'edge MB/s over raw',
      'edge cpu over raw',
      'edge cpu over wire',
      'step cpu over wire',
    ],
    ...measured.map(({ name, rounds }) => [
      name,
      ...CONTENDERS.map((of) => cost(rounds, of)),
      ratio(rounds, (round) => round.edge.mbPerSecond / round.raw.mbPerSecond),
      ratio(rounds, (round) => round.edge.cpuMsPerMb / round.raw.cpuMsPerMb),
      ratio(rounds, (round) => round.edge.cpuMsPerMb / round.wire.cpuMsPerMb),
      ratio(rounds, (round) => round.step.cpuMsPerMb / round.wire.cpuMsPerMb),
    ]),
  ])
}

/** Prints the times of calls without a broker between. */
export function printDirectLatency(measured: readonly Measured[]): void {
  console.log('\ndirectly, one call in flight, ms p50 / p99, and p50 over another')
  printTable([
    [
      '',
      ...DIRECT_CONTENDERS,
      'tcp over socket',
      'unix over socket',
      'tls over socket',
      'tcp over edge',
    ],
    ...measured.map(({ name, rounds }) => [
      name,
      ...DIRECT_CONTENDERS.map((of) => latency(rounds, of)),
      ratio(rounds, (round) => round.tcp.p50 / round.socket.p50),
      ratio(rounds, (round) => round.unix.p50 / round.socket.p50),
      ratio(rounds, (round) => round.tls.p50 / round.socket.p50),
      ratio(rounds, (round) => round.tcp.p50 / round.edge.p50),
    ]),
  ])
}

/** Prints what calls cost without a broker between. */
export function printDirectCost(what: string, measured: readonly Measured[]): void {
  console.log(`\ndirectly, ${what}: MB/s; cpu ms per MB, the broker's part in brackets`)
  printTable([
    ['', ...DIRECT_CONTENDERS, 'tcp cpu over socket', 'tcp cpu over edge', 'tls cpu over edge'],
    ...measured.map(({ name, rounds }) => [
      name,
      ...DIRECT_CONTENDERS.map((of) => cost(rounds, of)),
      ratio(rounds, (round) => round.tcp.cpuMsPerMb / round.socket.cpuMsPerMb),
      ratio(rounds, (round) => round.tcp.cpuMsPerMb / round.edge.cpuMsPerMb),
      ratio(rounds, (round) => round.tls.cpuMsPerMb / round.edge.cpuMsPerMb),
    ]),
  ])
}
