import type { ServedModel } from '@tutti/api'
import { type CancelSignal, ServeError } from '@tutti/errors'
import type { Envelope } from '@tutti/protocol'
import type { NamedTensor } from '@tutti/tensor'
import type { Lender, RecordedResponse } from '@tutti/tensor/testing'
import { executing, type TestHandler } from '@tutti/transport/testing'
import { toFloats } from './requests.ts'
import { testRouter, toConfig } from './test-router.ts'

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
export async function scriptedRouter(
  o: Parameters<typeof testRouter>[0] & {
    readonly models: Readonly<Record<string, ScriptedModel>>
    /** Lends the responses of the models. */
    readonly lender?: Lender
  },
) {
  const { models, lender, ...rest } = o
  const envelopes: Envelope[] = []
  const served = new Map(Object.entries(models))
  const execute: TestHandler = async (envelope, tensors, sink, { signal }) => {
    envelopes.push(envelope)
    const model = served.get(envelope.model)
    const inputs = new Map(
      envelope.inputs.map((input, i) => [input.name, toFloats(tensors[i]?.bytes)]),
    )
    if (model?.stream === undefined) sink.send(await answer(model, inputs, envelope, signal))
    else await model.stream(sink, signal)
  }
  const { router, replicas } = testRouter(rest)
  const find = executing(execute, o.clock)
  replicas.set('step-1', (target) => ({
    execute: (request, sink, options) =>
      find(target).execute(request, lender?.sink(sink) ?? sink, options),
  }))
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
