import type { ModelConfig } from '@tutti/model-config'
import { modelConfig } from '@tutti/model-config/testing'
import { DATATYPES } from '@tutti/tensor'
import { printCondition } from './draw-condition.ts'
import type {
  CalleeSketch,
  EnsembleSketch,
  ModelSketch,
  OnErrorSketch,
  Port,
  StepSketch,
  Value,
} from './sketch.ts'

type Fields = Readonly<Record<string, unknown>>

/** Makes the configuration of a model. */
export function toModelConfig(model: ModelSketch): ModelConfig {
  return modelConfig({
    name: model.name,
    max_batch_size: model.maxBatchSize,
    input: model.inputs.map((input) => ({ ...port(input), optional: input.optional })),
    output: model.outputs.map((output) => port(output)),
    model_transaction_policy: { decoupled: model.isDecoupled },
  })
}

function port({ name, type: { datatype, dims } }: Port) {
  return { name, data_type: DATATYPES[datatype].config, dims: [...dims] }
}

/** Writes an ensemble as the spec of a manifest. */
export function toSpec(ensemble: EnsembleSketch): Fields {
  const { timeoutMs } = ensemble
  return {
    inputs: ensemble.inputs.map(({ name, type, optional, default: value }) => ({
      name,
      ...toType(type),
      ...(optional && { optional }),
      ...(value !== undefined && { default: toConstant(value) }),
    })),
    outputs: ensemble.outputs.map(({ name, type, from, optional }) => ({
      name,
      ...toType(type),
      ...(from.length === 1 ? { from: from[0] } : { firstOf: from }),
      ...(optional && { optional }),
    })),
    steps: ensemble.steps.map(toStep),
    ...(timeoutMs !== undefined && { timeout: toDuration(timeoutMs) }),
  }
}

/** Numbers of a duration have at most five digits. */
function toDuration(ms: number): string {
  return `${Math.trunc(ms / 1000)}s${ms % 1000}ms`
}

function toType({ datatype, dims }: Port['type']) {
  return { datatype, shape: [...dims] }
}

function toConstant({ datatype, shape, values }: Value): Fields {
  const value = values.map((one) => (Number.isNaN(one) ? 'NaN' : one))
  return { datatype, shape: [...shape], value }
}

function toConstants(values: ReadonlyMap<string, Value>): Fields {
  return Object.fromEntries([...values].map(([name, value]) => [name, toConstant(value)]))
}

function toCallee({ kind, name }: CalleeSketch): Fields {
  return kind === 'model' ? { modelRef: { name } } : { ensembleRef: { name } }
}

function toStep(step: StepSketch): Fields {
  const { name, callee, parameters, when, timeoutMs, retry, hedgeMs, mayRunTwice, onError, after } =
    step
  return {
    name,
    ...toCallee(callee),
    ...toSources(step),
    ...(parameters !== undefined && { parameters }),
    ...(after.length > 0 && { dependsOn: after }),
    ...(when !== undefined && { when: printCondition(when) }),
    ...toRepeat(step),
    ...(timeoutMs !== undefined && { timeout: toDuration(timeoutMs) }),
    ...(retry !== undefined && { retry: toRetry(retry) }),
    ...(hedgeMs !== undefined && { hedge: { after: toDuration(hedgeMs), maxPercent: 100 } }),
    ...(mayRunTwice !== undefined && { mayRunTwice }),
    ...(onError !== undefined && { onError: toOnError(onError) }),
  }
}

function toRetry({ backoffMs, ...rest }: NonNullable<StepSketch['retry']>): Fields {
  return { ...rest, backoff: toDuration(backoffMs) }
}

function toOnError(onError: OnErrorSketch): Fields {
  if ('values' in onError) return { default: toConstants(onError.values) }
  const { fallback, timeoutMs } = onError
  const timeout = timeoutMs === undefined ? {} : { timeout: toDuration(timeoutMs) }
  return { fallback: { ...toCallee(fallback), ...timeout } }
}

function toSources({ inputs }: StepSketch): Fields {
  const fields: Record<'inputMap' | 'firstOf' | 'constants', Record<string, unknown>> = {
    inputMap: {},
    firstOf: {},
    constants: {},
  }
  for (const { name, from, isItem } of inputs) {
    if (isItem) continue
    if ('datatype' in from) fields.constants[name] = toConstant(from)
    else if (from.length > 1) fields.firstOf[name] = from
    else fields.inputMap[name] = from[0]
  }
  return Object.fromEntries(Object.entries(fields).filter(([, map]) => Object.keys(map).length > 0))
}

function toRepeat({ name, inputs, forEach, loop }: StepSketch): Fields {
  if (loop !== undefined) {
    const carry = loop.carry.map(({ input, output }) => [input, `${name}.${output}`])
    const { until, maxIterations } = loop
    return {
      loop: {
        carry: Object.fromEntries(carry),
        maxIterations,
        ...(until !== undefined && { until: printCondition(until) }),
      },
    }
  }
  if (forEach === undefined) return {}
  const { itemDefault, ...rest } = forEach
  const items = inputs.filter(({ isItem }) => isItem)
  return {
    forEach: {
      ...rest,
      items: Object.fromEntries(
        items.map(({ name: input, from }) => [input, 'datatype' in from ? '' : from[0]]),
      ),
      ...(itemDefault !== undefined && { onItemError: { default: toConstants(itemDefault) } }),
    },
  }
}
