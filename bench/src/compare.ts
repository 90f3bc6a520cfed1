import { delimiter, dirname } from 'node:path'
import { InferenceClient } from '@tutti/protocol/client'
import { benchPython } from './bench-python.ts'
import { contest, type Member, middle, ratios, type Turn, warmUp } from './contest.ts'
import { median, printTable } from './figures.ts'
import { sendBy } from './forms.ts'
import type { Ratios } from './history.ts'
import { type PeerOptions, startMlserver, startRay } from './peers.ts'
import { treeMemory } from './process-tree.ts'
import { compareAnswers, PYTHON_CASES, type PythonCase, writeRepository } from './python-cases.ts'
import { startTutti, untilReady } from './servers.ts'
import { startTriton } from './triton-server.ts'

const ROUNDS = 5
const TURN_MS = 1000
/** Loads of which one has room and the other none, of each case. */
const LOADS = 2

/** Peers that `npm run bench` installs, or says why it could not. */
const PEERS = [
  { name: 'Ray Serve', key: 'RAY', start: startRay },
  { name: 'MLServer', key: 'MLSERVER', start: startMlserver },
] as const

/** The same Python models in `tutti serve`, tritonserver, Ray Serve and MLServer, which take turns. */
export async function benchCompare(nodeFlags: readonly string[]): Promise<Ratios> {
  const opened = new AsyncDisposableStack()
  try {
    const { members, missing } = await startMembers(opened, nodeFlags)
    const all: Record<string, number> = {}
    for (const one of PYTHON_CASES) {
      await checkMembers(opened, one, members)
      const send = sendBy(one.form, one.request)
      await warmUp(members, { send, inFlight: one.inFlight[1] }, one.warmUpMs)
      for (const inFlight of one.inFlight.slice(0, LOADS)) {
        const load = { send, inFlight, rounds: ROUNDS, turnMs: TURN_MS }
        const turns = await contest(members, load)
        console.log(`\ncompare: ${one.name}, ${inFlight} in flight; medians of ${ROUNDS} rounds`)
        const best = bestPeer(members, turns)
        printTable([HEADINGS, ...members.map((member) => toRow(member, turns, best)), ...missing])
        if (best === undefined) continue
        const rates = ratios(turns.get(members[0]) ?? [], turns.get(best) ?? [], perSecond)
        all[`compare, ${one.key}, ${inFlight} in flight: requests/s`] = median(rates)
      }
    }
    return all
  } finally {
    await opened.disposeAsync()
  }
}

type Turns = ReadonlyMap<Member, readonly Turn[]>

/** Ours is the first. */
type Members = readonly [Member, ...Member[]]

async function startMembers(
  opened: AsyncDisposableStack,
  nodeFlags: readonly string[],
): Promise<{ readonly members: Members; readonly missing: readonly string[][] }> {
  const interpreter = benchPython()
  const repository = await writeRepository(opened)
  const env = { PATH: `${dirname(interpreter.python)}${delimiter}${process.env['PATH']}` }
  const tutti = await startTutti(repository, { nodeFlags, env })
  opened.defer(() => tutti.stop())
  const members: [Member, ...Member[]] = [{ ...tutti, name: 'tutti serve' }]
  const missing: string[][] = []
  const add = async (name: string, start: () => Promise<Member>): Promise<void> => {
    try {
      members.push(await start())
    } catch (error) {
      missing.push([name, `missing: ${error instanceof Error ? error.message : String(error)}`])
    }
  }
  await add('tritonserver', async () => {
    const triton = await startTriton(repository, interpreter)
    opened.defer(() => triton.stop())
    return { ...triton, name: 'tritonserver' }
  })
  for (const { name, key, start } of PEERS) {
    await add(name, () => start({ python: pythonOf(key), repository, opened }))
  }
  return { members, missing }
}

/** @throws Error with the reason why there is none. */
function pythonOf(key: string): PeerOptions['python'] {
  const python = process.env[`TUTTI_BENCH_${key}`]
  if (python !== undefined) return python
  throw new Error(process.env[`TUTTI_BENCH_${key}_MISSING`] ?? 'run it by npm run bench')
}

/** All give the same bytes. */
async function checkMembers(
  opened: AsyncDisposableStack,
  one: PythonCase,
  [tutti, ...peers]: Members,
): Promise<void> {
  const ours = { ...tutti, client: openClient(opened, tutti) }
  await untilReady(ours.client, one.request.modelName)
  for (const peer of peers) {
    await compareAnswers(one, ours, { ...peer, client: openClient(opened, peer) })
  }
}

function openClient(opened: AsyncDisposableStack, { grpcPort }: Member): InferenceClient {
  const client = new InferenceClient({ address: `127.0.0.1:${grpcPort}` })
  opened.defer(async () => client.close())
  return client
}

const perSecond = (turn: Turn): number => turn.perSecond

/** The one of the others with the most requests per second. */
function bestPeer([, ...peers]: Members, turns: Turns): Member | undefined {
  const rate = (member: Member): number => middle(turns.get(member) ?? []).perSecond
  return peers.toSorted((one, other) => rate(other) - rate(one))[0]
}

const HEADINGS = ['', 'req/s', 'p50 ms', 'p99 ms', 'cpu ms', 'resident MB', 'over the best peer']

function toRow(member: Member, turns: Turns, best: Member | undefined): string[] {
  const its = turns.get(member) ?? []
  const { perSecond: rate, p50Ms, p99Ms, cpuMs } = middle(its)
  const over = best === undefined ? [] : ratios(its, turns.get(best) ?? [], perSecond)
  return [
    member.name,
    rate.toFixed(1),
    p50Ms.toFixed(2),
    p99Ms.toFixed(2),
    cpuMs.toFixed(2),
    (treeMemory(member.pid).proportionalBytes / 1e6).toFixed(0),
    over.length === 0 ? '' : median(over).toFixed(2),
  ]
}
