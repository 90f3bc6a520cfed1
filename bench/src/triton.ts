import { delimiter, dirname, join } from 'node:path'
import { InferenceClient } from '@tutti/protocol/client'
import { benchPython } from './bench-python.ts'
import { contest, type Member, middle, ratios, type Turn, warmUp } from './contest.ts'
import { median, printTable } from './figures.ts'
import { sendBy } from './forms.ts'
import type { Ratios } from './history.ts'
import { startModelsAlone } from './models-alone.ts'
import {
  addNumpyModels,
  compareAnswers,
  NUMPY_CASE,
  PYTHON_CASES,
  type PythonCase,
  REST_CASES,
  writeRepository,
} from './python-cases.ts'
import { startTutti, untilReady, WITH_REST } from './servers.ts'
import { startTriton } from './triton-server.ts'

/** A start of a server differs from another one by 3 to 8 %, in the pages that it got. */
const STARTS = 3
/** Rounds of each load in a start. */
const ROUNDS = 2
const TURN_MS = 1000
/** NumPy alone comes before ONNX Runtime: see `warmUpMs` of the cases. */
const [ADD_SUB, FACE] = PYTHON_CASES
const CASES = [ADD_SUB, ...REST_CASES, NUMPY_CASE, FACE]

/** Options that a start needs. */
interface StartOptions {
  readonly repository: string
  readonly interpreter: ReturnType<typeof benchPython>
  readonly nodeFlags: readonly string[]
}

/** The turns of a case under a load, over all starts. */
interface LoadTurns {
  readonly ours: Turn[]
  readonly tritons: Turn[]
  /** Turns of the models without a server; empty if the case is not a chain. */
  readonly alone: Turn[]
}

type TurnsOf = (one: PythonCase, inFlight: number) => LoadTurns

/** The same repository of Python models in `tutti serve` and in NVIDIA's tritonserver, which take turns, over some starts of both. */
export async function benchTriton(nodeFlags: readonly string[]): Promise<Ratios> {
  const interpreter = benchPython()
  const opened = new AsyncDisposableStack()
  const all = new Map<string, LoadTurns>()
  const turnsOf: TurnsOf = (one, inFlight) => {
    const key = `triton, ${one.key}, ${inFlight} in flight`
    const turns = all.get(key) ?? { ours: [], tritons: [], alone: [] }
    all.set(key, turns)
    return turns
  }
  try {
    const repository = await writeRepository(opened)
    await addNumpyModels(repository)
    for (let start = 0; start < STARTS; start += 1) {
      console.log(`triton: start ${start + 1} of ${STARTS}`)
      await measureStart({ repository, interpreter, nodeFlags }, turnsOf)
    }
  } finally {
    await opened.disposeAsync()
  }
  for (const one of CASES) printCase(one, turnsOf)
  const entries = [...all].flatMap(([key, { ours, tritons }]) => [
    [`${key}: requests/s`, median(ratios(ours, tritons, perSecond))] as const,
    [`${key}: cpu`, median(ratios(tritons, ours, cpuMs))] as const,
  ])
  return Object.fromEntries(entries)
}

/** Starts both servers, and adds the turns of all cases. */
async function measureStart(o: StartOptions, turnsOf: TurnsOf): Promise<void> {
  const { repository, interpreter, nodeFlags } = o
  await using opened = new AsyncDisposableStack()
  const triton = { name: 'tritonserver', ...(await startTriton(repository, interpreter)) }
  opened.defer(() => triton.stop())
  const env = { PATH: `${dirname(interpreter.python)}${delimiter}${process.env['PATH']}` }
  const tutti = {
    name: 'tutti serve',
    ...(await startTutti(repository, { nodeFlags, env, flags: WITH_REST })),
  }
  opened.defer(() => tutti.stop())
  const ours = { ...tutti, client: openClient(opened, tutti) }
  const theirs = { ...triton, client: openClient(opened, triton) }
  for (const one of CASES) {
    await untilReady(ours.client, one.request.modelName)
    await untilReady(theirs.client, one.request.modelName)
    await compareAnswers(one, ours, theirs)
    const send = sendBy(one.form, one.request)
    const most = { send, inFlight: Math.max(...one.inFlight) }
    await warmUp([tutti, triton], most, one.warmUpMs)
    const bound = await startAlone(opened, one, { repository, python: interpreter.python })
    for (const inFlight of one.inFlight) {
      const load = { send, inFlight, rounds: ROUNDS, turnMs: TURN_MS }
      const turns = await contest<Member>([tutti, triton, ...bound], load)
      const sum = turnsOf(one, inFlight)
      sum.ours.push(...(turns.get(tutti) ?? []))
      sum.tritons.push(...(turns.get(triton) ?? []))
      sum.alone.push(...bound.flatMap((it) => turns.get(it) ?? []))
    }
  }
}

function printCase(one: PythonCase, turnsOf: TurnsOf): void {
  const rows = one.inFlight.flatMap((inFlight) => {
    const { ours, tritons, alone } = turnsOf(one, inFlight)
    return [toRow(inFlight, ours, tritons), ...(alone.length > 0 ? [boundRow(alone, ours)] : [])]
  })
  const rounds = `${STARTS} starts of both, ${ROUNDS} rounds in turn each`
  console.log(`\ntriton: ${one.name}, Python models; medians of ${rounds}`)
  printTable([HEADINGS, ...rows])
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
function boundRow(alone: readonly Turn[], mine: readonly Turn[]): string[] {
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
