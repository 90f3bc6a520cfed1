import { readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { LoadedModel } from '@tutti/backends'
import { ServeError } from '@tutti/errors'
import type { ModelConfig, ModelWarmup } from '@tutti/model-config'
import { isInside } from '@tutti/repository'
import { EMPTY_CONTEXT, type StepRequest } from '@tutti/tensor'
import type { Serving } from './hosted-model.ts'
import { warmUpInput } from './warm-up-data.ts'

export interface WarmUpOptions {
  readonly config: ModelConfig
  readonly instances: number
  readonly check: Serving['check']
  /** Absolute path of the model's directory; files of samples are below its `warmup`. */
  readonly modelDirectory: string
  readonly random: () => number
  /** Called with what runs now. */
  readonly report: (doing: string) => void
  /** Tells of inputs of a sample that the model does not have. */
  readonly warnOfInputs: (sample: string, inputs: readonly string[]) => void
}

/**
 * Runs the `model_warmup` samples of a config on every instance, so that each has compiled and allocated what it needs before the
 * version is READY. Counts in no statistics.
 *
 * @throws ServeError MODEL_WARMUP_FAILED with Triton's text: for a sample that is no request that of the request's check, and
 * `failed to run warmup sample 'S': ...` for one that the model fails.
 */
export async function warmUp(model: LoadedModel, o: WarmUpOptions): Promise<void> {
  for (const sample of o.config.model_warmup) {
    // Triton leaves out samples without a batch.
    if (sample.batch_size < 1) continue
    o.report(`warm-up sample '${sample.name}'`)
    const request = await sampleRequest(sample, o)
    const sizes = splitBatch(sample.batch_size, Math.max(1, o.config.max_batch_size))
    const all = Array.from({ length: Math.max(1, sample.count) }, () => sizes).flat()
    const runs = Array.from({ length: o.instances }, (_, instance) =>
      runSample(model, { request, sizes: all, instance }),
    )
    try {
      await allSettledOrThrow(runs)
    } catch (error) {
      const cause = ServeError.from(error)
      const text = `failed to run warmup sample '${sample.name}': ${cause.message}; `
      throw new ServeError('MODEL_WARMUP_FAILED', text, { code: 'INVALID_ARGUMENT', cause })
    }
  }
}

/**
 * Makes the request that tells whether a model works: the first sample of its `model_warmup`, else zeros in the smallest shapes
 * that its configuration allows.
 *
 * @returns undefined if none can be made.
 */
export async function trialRequest(o: WarmUpOptions): Promise<StepRequest | undefined> {
  const { model_warmup: samples } = o.config
  const sample = samples.find(({ batch_size: size }) => size > 0) ?? zeroSample(o.config)
  try {
    return await sampleRequest(sample, o)
  } catch {
    // A file of the sample is gone, or the model has rules for its requests that zeros break.
    return undefined
  }
}

function zeroSample({ input }: ModelConfig): ModelWarmup {
  const wanted = input.filter(({ optional }) => !optional)
  const inputs = wanted.map(({ name, data_type, dims }) => {
    const extents = dims.map((extent) => Math.max(1, extent))
    return [name, { data_type, dims: extents, zero_data: true }] as const
  })
  return { name: 'zeros', batch_size: 1, count: 0, inputs: Object.fromEntries(inputs) }
}

/** Executes a request once on an instance. @throws ServeError the error that the model gives it. */
export async function executeOnce(
  model: LoadedModel,
  o: { readonly request: StepRequest; readonly instance: number },
): Promise<void> {
  await runSample(model, { ...o, sizes: [1] })
}

async function sampleRequest(sample: ModelWarmup, o: WarmUpOptions): Promise<StepRequest> {
  const read = (filename: string) => readSample(o.modelDirectory, filename)
  const data = { hasBatch: o.config.max_batch_size > 0, random: o.random, read }
  const declared = new Set(o.config.input.map(({ name }) => name))
  // Triton leaves out inputs that are not the model's.
  const given = Object.entries(sample.inputs)
  const known = given.filter(([name]) => declared.has(name))
  const unknown = given.filter(([name]) => !declared.has(name)).map(([name]) => name)
  if (unknown.length > 0) o.warnOfInputs(sample.name, unknown)
  try {
    const inputs = await Promise.all(known.map(([name, input]) => warmUpInput(name, input, data)))
    return o.check({ context: EMPTY_CONTEXT, inputs, requestedOutputs: [] })
  } catch (error) {
    const cause = ServeError.from(error)
    const text = `${cause.message.trimEnd()} (warm-up sample '${sample.name}')`
    throw new ServeError('MODEL_WARMUP_FAILED', text, { code: cause.code, cause })
  }
}

/**
 * Splits a batch size. Triton sends a sample of batch size n as n requests of one item; no execution may exceed the model's
 * maximum.
 */
function splitBatch(size: number, max: number): readonly number[] {
  const full = Array.from({ length: Math.floor(size / max) }, () => max)
  return size % max === 0 ? full : [...full, size % max]
}

/** Executes batches of the request, one after the other: an instance takes one execution at a time. */
async function runSample(
  model: LoadedModel,
  o: {
    readonly request: StepRequest
    readonly sizes: readonly number[]
    readonly instance: number
  },
): Promise<void> {
  let failure: ServeError | undefined
  const fail = (error: ServeError): void => {
    failure ??= error
  }
  const entry = { request: o.request, sink: { send: () => {}, fail } }
  // No caller waits for a warm-up, so none can abandon it.
  const { signal } = new AbortController()
  for (const size of o.sizes) {
    const batch = Array.from({ length: size }, () => entry)
    await model.execute(batch, { instance: o.instance, signal })
    if (failure !== undefined) throw failure
  }
}

/** Waits for all, so that no instance still executes when the failed model is closed. */
async function allSettledOrThrow(runs: readonly Promise<void>[]): Promise<void> {
  const failed = (await Promise.allSettled(runs)).find((run) => run.status === 'rejected')
  if (failed !== undefined) throw ServeError.from(failed.reason)
}

/** Reads a sample's file, by its name below `<model>/warmup/`. */
async function readSample(modelDirectory: string, filename: string): Promise<Uint8Array> {
  const folder = join(modelDirectory, 'warmup')
  const path = resolve(folder, filename)
  if (!isInside(folder, path)) {
    const text = `warmup file '${filename}' is outside the model's warmup directory`
    throw new ServeError('MODEL_WARMUP_FAILED', text, { code: 'INVALID_ARGUMENT' })
  }
  // Not a Buffer: its slice() shares memory where that of other arrays copies.
  return Uint8Array.from(await readFile(path))
}
