import { readdir, readFile } from 'node:fs/promises'
import { until } from '@tutti/chassis/testing'
import type { Test } from 'tap'
import { restCall } from './rest-call.ts'
import { restInfer, restOutputs } from './rest-infer.ts'
import type { Serving, Target } from './serving.ts'
import { copyModels, instances } from './temp-repository.ts'
import { row } from './tensors.ts'

/** Resources that a process holds, as the kernel counts them. */
export interface Held {
  readonly descriptors: number
  readonly threads: number
  readonly residentBytes: number
}

/** Bytes that a process has resident. */
export async function residentBytes(serving: Pick<Serving, 'process'>): Promise<number> {
  return (await heldBy(serving)).residentBytes
}

/** Reads what a process holds now. */
export async function heldBy({ process: { pid } }: Pick<Serving, 'process'>): Promise<Held> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  const field = (name: string): number => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1])
  const descriptors = await readdir(`/proc/${pid}/fd`)
  return {
    descriptors: descriptors.length,
    threads: field('Threads'),
    residentBytes: field('VmRSS') * 1024,
  }
}

/** POSTs to a load or unload path. @throws Error with the answer's text unless it is 200. */
export async function controlModel(
  serving: Target,
  model: string,
  action: 'load' | 'unload',
  parameters: Readonly<Record<string, unknown>> = {},
): Promise<void> {
  const path = `/v2/repository/models/${model}/${action}`
  const body = JSON.stringify({ parameters })
  const answer = await restCall(serving.httpPort, 'POST', path, { body })
  if (answer.status !== 200) throw new Error(`${action} ${model}: ${answer.body.toString()}`)
}

/** Asks a model that adds a number to `x` what it adds. @throws Error if it does not answer. */
export async function addedBy(serving: Target, model: string): Promise<number> {
  const data = new Uint8Array(Float32Array.of(0).buffer)
  const tensor = { name: 'x', datatype: 'FP32' as const, shape: [1], data }
  const output = restOutputs(await restInfer(serving, model, [tensor])).get('y')
  return output?.readFloatLE() ?? Number.NaN
}

/** A repository for `churn`: one instance, as each is a thread of its own that takes a while to start. */
export function churnRepository(t: Test): Promise<string> {
  return copyModels(t, ['add_one_batch', 'ens_chain'], { append: { add_one_batch: instances(1) } })
}

/** Loads an ensemble with its model, asks it once, and unloads both, so many times. */
export async function churn(serving: Serving, times: number): Promise<void> {
  for (let i = 0; i < times; i++) {
    await controlModel(serving, 'ens_chain', 'load')
    const output = restOutputs(await restInfer(serving, 'ens_chain', [row('X')])).get('Y')
    if (output?.readFloatLE() !== 2) throw new Error('ens_chain did not add 2 to 0')
    await controlModel(serving, 'ens_chain', 'unload', { unload_dependents: true })
  }
  await untilUnloaded(serving)
}

/** Reads what the REST index says of the versions of models. */
export async function repositoryIndex({
  httpPort,
}: Target): Promise<
  readonly Readonly<Partial<Record<'name' | 'version' | 'state' | 'reason', string>>>[]
> {
  const answer = await restCall(httpPort, 'POST', '/v2/repository/index')
  return JSON.parse(answer.body.toString())
}

/** Unloading goes on in the background; waits until nothing of it is left. */
async function untilUnloaded(serving: Serving): Promise<void> {
  await until('all is unloaded', async () => {
    const busy = ['READY', 'UNLOADING', 'LOADING']
    return (await repositoryIndex(serving)).every(({ state = '' }) => !busy.includes(state))
  })
}
