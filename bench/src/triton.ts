import { delimiter, dirname, join } from 'node:path'
import { InferenceClient } from '@tutti/protocol'
import { benchPython } from './bench-python.ts'
import { contest, type Member, middle, ratios, type Turn } from './contest.ts'
import { median, printTable } from './figures.ts'
import type { Ratios } from './history.ts'
import { startModelsAlone } from './models-alone.ts'
import {
  addNumpyModels,
  compareAnswers,
  NUMPY_CASE,
  PYTHON_CASES,
  type PythonCase,
  writeRepository,
} from './python-cases.ts'
import { startTutti, untilReady } from './servers.ts'
import { startTriton } from './triton-server.ts'

const ROUNDS = 5
const TURN_MS = 1000

/** The same repository of Python models in `tutti serve` and in NVIDIA's tritonserver, which take turns. */
export async function benchTriton(nodeFlags: readonly string[]): Promise<Ratios> {
  const interpreter = benchPython()
  const opened = new AsyncDisposableStack()
  try {
    const repository = await writeRepository(opened)
    await addNumpyModels(repository)
    const triton = { name: 'tritonserver', ...(await startTriton(repository, interpreter)) }
    opened.defer(() => triton.stop())
    const env = { PATH: `${dirname(interpreter.python)}${delimiter}${process.env['PATH']}` }
    const tutti = { name: 'tutti serve', ...(await startTutti(repository, { nodeFlags, env })) }
    opened.defer(() => tutti.stop())
    const [ours, theirs] = [openClient(opened, tutti), openClient(opened, triton)]
    const all: Record<string, number> = {}
    for (const one of [...PYTHON_CASES, NUMPY_CASE]) {
      await untilReady(ours, one.request.modelName)
      await untilReady(theirs, one.request.modelName)
      await compareAnswers(one, ours, theirs)
      const bound = await startAlone(opened, one, { repository, python: interpreter.python })
      const rows = [HEADINGS]
      for (const inFlight of one.inFlight) {
        const load = { request: one.request, inFlight, rounds: ROUNDS, turnMs: TURN_MS }
        const turns = await contest<Member>([tutti, triton, ...bound], load)
        const [mine = [], other = []] = [turns.get(tutti), turns.get(triton)]
        rows.push(toRow(inFlight, mine, other), ...bound.map((it) => boundRow(turns.get(it), mine)))
        const name = `triton, ${one.key}, ${inFlight} in flight`
        all[`${name}: requests/s`] = median(ratios(mine, other, perSecond))
        all[`${name}: cpu`] = median(ratios(other, mine, cpuMs))
      }
      console.log(`\ntriton: ${one.name}, Python models; medians of ${ROUNDS} rounds in turn`)
      printTable(rows)
    }
    return all
  } finally {
    await opened.disposeAsync()
  }
}

/** Starts the models of a chain without a server. @returns an empty list if the case is not a chain. */
async function startAlone(
  opened: AsyncDisposableStack,
  { chain }: PythonCase,
  o: { readonly repository: string; readonly python: string },
): Promise<readonly Member[]> {
  if (chain === undefined) return []
  const folders = chain.models.map((name) => join(o.repository, name))
  return [await startModelsAlone(opened, { python: o.python, folders, shape: chain.shape })]
}

function openClient(opened: AsyncDisposableStack, { grpcPort }: Member): InferenceClient {
  const client = new InferenceClient({ address: `127.0.0.1:${grpcPort}` })
  opened.defer(async () => client.close())
  return client
}

const perSecond = (turn: Turn): number => turn.perSecond
const cpuMs = (turn: Turn): number => turn.cpuMs

const HEADINGS = [
  'in flight',
  'tutti req/s',
  'triton req/s',
  'ratio',
  'worst',
  'best',
  'p50 ms',
  'triton p50 ms',
  'cpu ms',
  'triton cpu ms',
  'client cpu ms',
]

function toRow(inFlight: number, mine: readonly Turn[], other: readonly Turn[]): string[] {
  const rates = ratios(mine, other, perSecond)
  const [one, two] = [middle(mine), middle(other)]
  return [
    String(inFlight),
    one.perSecond.toFixed(1),
    two.perSecond.toFixed(1),
    median(rates).toFixed(2),
    Math.min(...rates).toFixed(2),
    Math.max(...rates).toFixed(2),
    one.p50Ms.toFixed(2),
    two.p50Ms.toFixed(2),
    one.cpuMs.toFixed(2),
    two.cpuMs.toFixed(2),
    one.clientCpuMs.toFixed(3),
  ]
}

/** Below the row of the servers: the models without one, and what the server has of their requests/s. */
function boundRow(alone: readonly Turn[] = [], mine: readonly Turn[] = []): string[] {
  const rates = ratios(mine, alone, perSecond)
  const one = middle(alone)
  const figures = [one.perSecond.toFixed(1), '', median(rates).toFixed(2)]
  const span = [Math.min(...rates).toFixed(2), Math.max(...rates).toFixed(2)]
  return [
    'models alone',
    ...figures,
    ...span,
    one.p50Ms.toFixed(2),
    '',
    one.cpuMs.toFixed(2),
    '',
    '',
  ]
}
