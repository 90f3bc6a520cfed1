import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startNatsServer } from '@tutti/chassis/testing'
import { InferenceClient } from '@tutti/protocol/client'
import { cpuUs, median, printTable } from './figures.ts'
import { type ForkedProcess, startForked } from './forked.ts'
import { startEndpoint, untilReady } from './servers.ts'

const MODEL = 'waiting'
const WAIT_MS = 20
const REPLICAS = [1, 2, 4] as const
const IN_FLIGHT = 16
const ROUNDS = 5
/** Per replica: about two seconds of waiting. */
const REQUESTS = 100

const CONFIG = `backend: "waiting"
max_batch_size: 0
input [ { name: "x" data_type: TYPE_FP32 dims: [ 16 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 16 ] } ]
instance_group [ { kind: KIND_CPU count: 1 } ]
`

const data = new Uint8Array(Float32Array.from({ length: 16 }, (_, i) => i).buffer)
const request = {
  modelName: MODEL,
  inputs: [{ name: 'x', datatype: 'FP32', shape: [16], data }],
} as const

/** A router and so many replicas of the slow step, with a repository name of their own. */
interface Group {
  readonly client: InferenceClient
  readonly routerPid: number
  readonly replicas: readonly ForkedProcess[]
}

interface Sample {
  readonly perSecond: number
  /** Requests of the busiest replica over those of the idlest. */
  readonly unevenness: number
  readonly routerCpuUs: number
}

/** Throughput of a step that waits 20 ms with one instance, by the number of its replicas. */
export async function benchReplicas(nodeFlags: readonly string[]): Promise<void> {
  const opened = new AsyncDisposableStack()
  try {
    const models = makeRepository(opened)
    const broker = await startNatsServer()
    opened.defer(() => broker.stop())
    const groups: Group[] = []
    for (const count of REPLICAS) {
      groups.push(await openGroup(opened, { count, models, broker: broker.url, nodeFlags }))
    }
    const samples: Sample[][] = groups.map(() => [])
    for (const group of groups) await sample(group)
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const [i, group] of groups.entries()) samples[i]?.push(await sample(group))
    }
    print(samples)
  } finally {
    await opened.disposeAsync()
  }
}

function makeRepository(opened: AsyncDisposableStack): string {
  const path = mkdtempSync(join(tmpdir(), 'tutti-bench-'))
  opened.defer(() => rmSync(path, { recursive: true }))
  mkdirSync(join(path, MODEL, '1'), { recursive: true })
  writeFileSync(join(path, MODEL, 'config.pbtxt'), CONFIG)
  return path
}

async function openGroup(
  opened: AsyncDisposableStack,
  o: {
    readonly count: number
    readonly models: string
    readonly broker: string
    readonly nodeFlags: readonly string[]
  },
): Promise<Group> {
  const { count, models, broker, nodeFlags } = o
  const name = `replicas-${count}`
  const replicas = await Promise.all(
    Array.from({ length: count }, (_, i) => {
      const args = [`waiting-${i}`, broker, name, models, String(WAIT_MS)]
      return startForked('./waiting-step.js', args, nodeFlags)
    }),
  )
  for (const replica of replicas) opened.defer(() => replica.stop())
  const flags = [`--repository-name=${name}`]
  const router = await startEndpoint('router', { repository: models, broker, flags, nodeFlags })
  opened.defer(() => router.stop())
  const client = new InferenceClient({ address: `127.0.0.1:${router.grpcPort}` })
  opened.defer(() => client.close())
  await untilReady(client, MODEL)
  return { client, routerPid: router.pid, replicas }
}

async function sample({ client, routerPid, replicas }: Group): Promise<Sample> {
  const count = (): Promise<readonly number[]> =>
    Promise.all(replicas.map((replica) => replica.ask<number>()))
  const requests = REQUESTS * replicas.length
  let left = requests
  const clientLoop = async (): Promise<void> => {
    while (left > 0) {
      left -= 1
      const { outputs } = await client.infer(request)
      if (outputs[0] === undefined || Buffer.compare(outputs[0].data, data) !== 0) {
        throw new Error(`${MODEL} did not answer with its input`)
      }
    }
  }
  const before = await count()
  const cpuBefore = cpuUs(routerPid)
  const started = performance.now()
  await Promise.all(Array.from({ length: IN_FLIGHT }, clientLoop))
  const perSecond = requests / ((performance.now() - started) / 1000)
  const shares = (await count()).map((executed, i) => executed - (before[i] ?? 0))
  return {
    perSecond,
    unevenness: Math.max(...shares) / Math.min(...shares),
    routerCpuUs: (cpuUs(routerPid) - cpuBefore) / requests,
  }
}

function print(samples: readonly (readonly Sample[])[]): void {
  console.log(`\nreplicas: a step that waits ${WAIT_MS} ms, one instance, ${IN_FLIGHT} in flight`)
  console.log(`medians of ${ROUNDS} rounds of ${REQUESTS} requests per replica`)
  const of = (rounds: readonly Sample[], read: (one: Sample) => number): number =>
    median(rounds.map(read))
  const single = of(samples[0] ?? [], (one) => one.perSecond)
  printTable([
    [
      'replicas',
      'requests/s',
      'over one',
      'of waiting alone',
      'busiest over idlest',
      'router cpu us',
    ],
    ...samples.map((rounds, i) => {
      const count = REPLICAS[i] ?? Number.NaN
      const perSecond = of(rounds, (one) => one.perSecond)
      return [
        String(count),
        perSecond.toFixed(1),
        (perSecond / single).toFixed(2),
        ((perSecond * WAIT_MS) / 1000 / count).toFixed(2),
        of(rounds, (one) => one.unevenness).toFixed(2),
        of(rounds, (one) => one.routerCpuUs).toFixed(0),
      ]
    }),
  ])
}
