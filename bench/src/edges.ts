import { SERVING_FLAGS } from '@tutti/chassis/runtime'
import { type NatsServer, startNatsServer } from '@tutti/chassis/testing'
import {
  type Contender,
  printCost,
  printDirectCost,
  printDirectLatency,
  printLatency,
  type Round,
  type Sample,
} from './edge-report.ts'
import type { EdgeRound, EdgeTimes } from './edge-round.ts'
import { cpuUs, median, quantile } from './figures.ts'
import { makeFixtureRepository } from './fixture.ts'
import { type ForkedProcess, startForked } from './forked.ts'
import { startEndpoint } from './servers.ts'

const MODEL = 'big_identity'
const ROUNDS = 5
const MEGABYTE = 1e6

/** A round takes some tenths of a second on an idle machine; `inFlight` of the loaded one is what 8 MB take, from 2 to 64. */
const SIZES = [
  { name: '1 KB', bytes: 1020, calls: 1500, loaded: { calls: 6000, inFlight: 64 } },
  { name: '64 KB', bytes: 65_532, calls: 400, loaded: { calls: 800, inFlight: 64 } },
  { name: '786 KB', bytes: 786_432, calls: 200, loaded: { calls: 200, inFlight: 10 } },
  { name: '8 MB', bytes: 8_388_600, calls: 10, loaded: { calls: 10, inFlight: 2 } },
] as const

interface Edge {
  /** Undefined where none is between. */
  readonly broker: NatsServer | undefined
  readonly caller: ForkedProcess
  /** The process that answers. */
  readonly answerer: { readonly pid: number; stop(): Promise<void> }
}

/**
 * Measures what a call over NATS costs, over a request of the plain client with the same bytes; and what it costs directly, over a
 * plain socket. All run as our programs do.
 */
export async function benchEdges(flags: readonly string[]): Promise<void> {
  const nodeFlags = [...SERVING_FLAGS, ...flags]
  const repository = makeFixtureRepository(MODEL)
  const opened = new AsyncDisposableStack()
  opened.defer(() => repository.remove())
  try {
    const edges = {
      raw: await openRaw(opened, 'raw', nodeFlags),
      wire: await openRaw(opened, 'wire', nodeFlags),
      socket: await openSocket(opened, nodeFlags),
      edge: await openEdge(opened, '', nodeFlags),
      tcp: await openEdge(opened, 'tcp', nodeFlags),
      unix: await openEdge(opened, 'unix', nodeFlags),
      tls: await openEdge(opened, 'tls', nodeFlags),
      step: await openStep(opened, repository.path, nodeFlags),
    }
    console.log(
      `\nedges: there and back over one nats-server or directly, medians of ${ROUNDS} rounds`,
    )
    const alone = []
    const loaded = []
    for (const size of SIZES) {
      const { bytes, calls } = size
      alone.push({ name: size.name, rounds: await runRounds(edges, { bytes, calls, inFlight: 1 }) })
      loaded.push({ name: size.name, rounds: await runRounds(edges, { bytes, ...size.loaded }) })
    }
    printLatency(alone)
    printDirectLatency(alone)
    printCost('one call in flight', alone)
    printCost('8 MB in flight, at least 2 and at most 64 calls', loaded)
    printDirectCost('one call in flight', alone)
    printDirectCost('8 MB in flight, at least 2 and at most 64 calls', loaded)
  } finally {
    await opened.disposeAsync()
  }
}

/** A raw client sends a tensor in one message, so its broker has to take that; ours keeps the default of 1 MiB. */
async function openRaw(
  opened: AsyncDisposableStack,
  kind: 'raw' | 'wire',
  flags: readonly string[],
): Promise<Edge> {
  const broker = await startNatsServer({ config: 'max_payload: 16MB' })
  opened.defer(() => broker.stop())
  const answerer = await startForked('./edge-echo.js', [kind, broker.url], flags)
  opened.defer(() => answerer.stop())
  const caller = await startForked('./edge-caller.js', [kind, broker.url], flags)
  opened.defer(() => caller.stop())
  return { broker, caller, answerer }
}

async function openSocket(opened: AsyncDisposableStack, flags: readonly string[]): Promise<Edge> {
  const answerer = await startForked('./edge-echo.js', ['socket'], flags)
  opened.defer(() => answerer.stop())
  const port = await answerer.ask<number>()
  const caller = await startForked('./edge-caller.js', ['socket', String(port)], flags)
  opened.defer(() => caller.stop())
  return { broker: undefined, caller, answerer }
}

/** @param via - the direct transport; '' for none. */
async function openEdge(
  opened: AsyncDisposableStack,
  via: string,
  flags: readonly string[],
): Promise<Edge> {
  const broker = await startNatsServer()
  opened.defer(() => broker.stop())
  const args = ['transport', broker.url, MODEL, via]
  const answerer = await startForked('./edge-echo.js', args, flags)
  opened.defer(() => answerer.stop())
  const caller = await startForked('./edge-caller.js', args, flags)
  opened.defer(() => caller.stop())
  return { broker, caller, answerer }
}

async function openStep(
  opened: AsyncDisposableStack,
  repository: string,
  nodeFlags: readonly string[],
): Promise<Edge> {
  const broker = await startNatsServer()
  opened.defer(() => broker.stop())
  const answerer = await startEndpoint('step', { repository, broker: broker.url, nodeFlags })
  opened.defer(() => answerer.stop())
  const args = ['transport', broker.url, MODEL]
  const caller = await startForked('./edge-caller.js', args, nodeFlags)
  opened.defer(() => caller.stop())
  return { broker, caller, answerer }
}

/** The first round warms up and is not counted. */
async function runRounds(
  edges: Readonly<Record<Contender, Edge>>,
  round: EdgeRound,
): Promise<readonly Round[]> {
  const rounds: Round[] = []
  for (let i = 0; i <= ROUNDS; i += 1) {
    rounds.push({
      raw: await sample(edges.raw, round),
      wire: await sample(edges.wire, round),
      socket: await sample(edges.socket, round),
      edge: await sample(edges.edge, round),
      tcp: await sample(edges.tcp, round),
      unix: await sample(edges.unix, round),
      tls: await sample(edges.tls, round),
      step: await sample(edges.step, round),
    })
  }
  return rounds.slice(1)
}

async function sample({ broker, caller, answerer }: Edge, round: EdgeRound): Promise<Sample> {
  const ends = [caller.pid, answerer.pid]
  const cpu = (): readonly number[] =>
    [...(broker === undefined ? [] : [broker.pid]), ...ends].map(cpuUs)
  const before = cpu()
  const { wallMs, latenciesMs } = await caller.ask<EdgeTimes>([
    round.bytes,
    round.calls,
    round.inFlight,
  ])
  const used = cpu().map((us, i) => us - (before[i] ?? 0))
  // One more call than is timed: the one whose bytes are compared.
  const carried = (2 * round.bytes * (round.calls + 1)) / MEGABYTE
  const perMb = (us: number): number => us / 1000 / carried
  return {
    p50: median(latenciesMs),
    p99: quantile(latenciesMs, 0.99),
    mbPerSecond: (2 * round.bytes * round.calls) / MEGABYTE / (wallMs / 1000),
    cpuMsPerMb: perMb(used.reduce((sum, us) => sum + us, 0)),
    brokerMsPerMb: broker === undefined ? 0 : perMb(used[0] ?? Number.NaN),
  }
}
