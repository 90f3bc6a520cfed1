import { createLogger } from '@tutti/chassis'
import { createManualClock } from '@tutti/chassis/testing'
import { type DynamicBatching, emptyModelConfig, type ModelConfig } from '@tutti/model-config'
import { modelInput, modelOutput } from '@tutti/model-config/testing'
import { type ServerMetrics, StatisticsRecorder } from '@tutti/telemetry'
import type { ExecuteOptions, NamedTensor, StepRequest } from '@tutti/tensor'
import type { DeviceWatch } from '../execution/device-watch.ts'
import type { Scheduler } from '../execution/scheduler.ts'
import { buildScheduler } from '../load/load-version.ts'
import type { Sequences } from '../sequence/build-sequences.ts'
import { ScriptedModel } from './scripted-engine.ts'
import { batchRequest, RecordingSink } from './step-builders.ts'

/** Dynamic batching with the defaults of a normalised config of `max_batch_size` 4. */
export function dynamicBatching(rest: Partial<DynamicBatching> = {}): DynamicBatching {
  return {
    preferred_batch_size: [4],
    max_queue_delay_microseconds: 0,
    preserve_ordering: false,
    priority_levels: 0,
    default_priority_level: 0,
    priority_queue_policy: {},
    ...rest,
  }
}

/** A normalised config: FP32 `x` [-1] -> FP32 `y` [-1], `max_batch_size` 4, served by the scripted engine. */
export function scriptedConfig(rest: Partial<ModelConfig> = {}): ModelConfig {
  return {
    ...emptyModelConfig('m'),
    backend: 'scripted',
    max_batch_size: 4,
    input: [modelInput('x', 'TYPE_FP32', [-1])],
    output: [modelOutput('y', 'TYPE_FP32', [-1])],
    ...rest,
  }
}

/** A scheduler over a scripted model and a clock that stands still. */
export function createSchedulerRig(
  o: {
    readonly config?: ModelConfig
    readonly instances?: number
    readonly maxQueuedRequests?: number
    readonly openExecutions?: number
    readonly sequences?: Sequences
    /** `maxQueueDelay: auto`. */
    readonly isAutoDelayed?: boolean
    readonly metrics?: ServerMetrics
    readonly deviceWatch?: Pick<DeviceWatch, 'executed'>
  } = {},
) {
  const config = o.config ?? scriptedConfig()
  const clock = createManualClock()
  const model = new ScriptedModel(o.openExecutions)
  const statistics = new StatisticsRecorder({ name: config.name, version: '1', clock })
  const lines: string[] = []
  const destination = { write: (line: string) => lines.push(line) }
  const order: string[] = []
  const scheduler: Scheduler = buildScheduler({
    loaded: model,
    config,
    version: 1,
    instances: o.instances ?? 1,
    statistics,
    sequences: o.sequences,
    deviceWatch: o.deviceWatch,
    settings: {
      replica: 'r1',
      maxQueuedRequests: o.maxQueuedRequests ?? 100,
      autoDelays: new Set(o.isAutoDelayed === true ? [config.name] : []),
      clock,
      ...(o.metrics && { metrics: o.metrics }),
      log: createLogger({ level: 'debug', name: 'test', destination }),
    },
  })
  const submit = (
    name: string,
    request: StepRequest = batchRequest({ id: name }),
    options: Partial<ExecuteOptions> = {},
  ) => {
    const controller = new AbortController()
    const sink = new RecordingSink(name, order)
    scheduler.execute(request, sink, { signal: controller.signal, ...options })
    return {
      sink,
      /** Resolves with the final response or the failure. */
      done: sink.all as Promise<unknown>,
      /** `CODE REASON text`, 'OK' or '' if it is not answered yet. */
      get outcome() {
        return sink.outcome
      },
      get outputs(): readonly NamedTensor[] {
        return sink.responses.flatMap((response) => response.outputs)
      },
      cancel: (reason?: unknown): void => controller.abort(reason),
    }
  }
  return { clock, model, statistics, scheduler, submit, lines, order }
}

/** Ids of the requests of each execution that began, e.g. `['ab', 'c']`. */
export function executedIds(model: ScriptedModel): readonly string[] {
  return model.executions.map(({ requests }) => requests.map((r) => r.context.id).join(''))
}
