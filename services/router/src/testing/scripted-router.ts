import { type Clock, createTracing, silentLogger, systemClock } from '@tutti/chassis'
import type { EnsembleRules, ServedModel } from '@tutti/ensemble'
import { type CancelSignal, ServeError } from '@tutti/errors'
import { type ModelConfig, normaliseModelConfig, parseModelConfig } from '@tutti/model-config'
import type { Envelope } from '@tutti/protocol'
import { ServerMetrics } from '@tutti/server'
import type { NamedTensor } from '@tutti/tensor'
import type { RecordedResponse } from '@tutti/tensor/testing'
import { StepDirectory } from '@tutti/transport'
import { executing, type TestHandler } from '@tutti/transport/testing'
import type { EnsembleSource } from '../ensemble-source.ts'
import { Router, type RouterOptions } from '../router.ts'
import { ReplicaExecutors } from './replica-executors.ts'

/** A model that a test plays: its config and what it answers. */
export interface ScriptedModel {
  readonly config: string
  readonly versions?: readonly number[]
  /** Set to list the model as failed. */
  readonly loadError?: string
  run?(
    inputs: ReadonlyMap<string, Float32Array>,
    envelope: Envelope,
    signal: CancelSignal,
  ): Promise<ReadonlyMap<string, NamedTensor>> | ReadonlyMap<string, NamedTensor>
  /** Instead of `run`, for a model with any number of responses. */
  stream?(sink: Parameters<TestHandler>[2], signal: CancelSignal): Promise<void>
}

const TIMES = {
  queueNs: 1,
  computeInputNs: 2,
  computeInferNs: 3,
  computeOutputNs: 4,
  transferNs: 0,
}

/** A router over one scripted step replica, with ensembles given as config.pbtxt text. */
export async function scriptedRouter(o: {
  readonly models: Readonly<Record<string, ScriptedModel>>
  readonly ensembles?: Readonly<Record<string, string>>
  /** Rules of the ensembles' manifests, by name. */
  readonly rules?: Readonly<Record<string, EnsembleRules>>
  readonly clock?: Clock
  readonly nesting?: RouterOptions['nesting']
}) {
  const { clock = systemClock } = o
  const executors = new ReplicaExecutors()
  const envelopes: Envelope[] = []
  const metrics = new ServerMetrics()
  const served = new Map(Object.entries(o.models))
  const execute: TestHandler = async (envelope, tensors, sink, { signal }) => {
    envelopes.push(envelope)
    const model = served.get(envelope.model)
    const inputs = new Map(
      envelope.inputs.map((input, i) => [input.name, toFloats(tensors[i]?.bytes)]),
    )
    if (model?.stream === undefined) sink.send(await answer(model, inputs, envelope, signal))
    else await model.stream(sink, signal)
  }
  executors.set('step-1', executing(execute, clock))
  const router = new Router({
    name: 'router-1',
    ensembles: Object.entries(o.ensembles ?? {}).map(([name, text]) => {
      const rules = o.rules?.[name]
      return { ...ensembleSource(name, text), ...(rules !== undefined && { rules }) }
    }),
    directory: new StepDirectory(),
    replicas: executors,
    strictReadiness: true,
    ...(o.nesting !== undefined && { nesting: o.nesting }),
    clock,
    log: silentLogger,
    tracing: createTracing({ serviceName: 'test' }),
    metrics,
  })
  const refresh = (): void => {
    const models = [...served].map(([name, model]) => describe(name, model))
    router.view.describe({ replica: 'step-1', models }, { statistics: async () => [] })
  }
  refresh()
  return { router, envelopes, served, refresh }
}

async function answer(
  model: ScriptedModel | undefined,
  inputs: ReadonlyMap<string, Float32Array>,
  envelope: Envelope,
  signal: CancelSignal,
): Promise<RecordedResponse> {
  const empty = { index: 0, final: true, outputs: [], parameters: new Map(), times: TIMES }
  try {
    const outputs = await model?.run?.(inputs, envelope, signal)
    return { ...empty, outputs: [...(outputs ?? new Map()).values()] }
  } catch (error) {
    return { ...empty, error: ServeError.from(error) }
  }
}

function describe(name: string, model: ScriptedModel): ServedModel {
  const versions = (model.versions ?? [1]).map((version) => ({
    version,
    revision: `revision-${version}`,
    state: model.loadError === undefined ? ('READY' as const) : ('UNAVAILABLE' as const),
    reason: model.loadError ?? '',
  }))
  return { name, config: toConfig(name, model.config), labels: {}, versions, reason: '' }
}

function ensembleSource(name: string, text: string): EnsembleSource {
  return {
    name,
    config: toConfig(name, text),
    labels: {},
    versions: [{ version: 1, revision: 'ensemble-revision' }],
    reason: '',
  }
}

function toConfig(name: string, text: string): ModelConfig {
  return normaliseModelConfig({ ...parseModelConfig(text, `${name}/config.pbtxt`), name })
}

/** An FP32 tensor of the values, with the shape given or [n]. */
export function floats(
  name: string,
  values: readonly number[],
  shape: readonly number[] = [values.length],
): NamedTensor {
  const data = new Uint8Array(Float32Array.from(values).buffer)
  return { name, datatype: 'FP32', shape, data }
}

export function toFloats(data: Uint8Array | undefined): Float32Array {
  return new Float32Array((data ?? new Uint8Array()).slice().buffer)
}
