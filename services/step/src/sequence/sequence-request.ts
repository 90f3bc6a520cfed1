import { ServeError } from '@tutti/errors'
import { compileRequestCheck, type ModelConfig } from '@tutti/model-config'
import {
  type InferRequest,
  type NamedTensor,
  type RequestContext,
  requestPrefix,
  type StepRequest,
} from '@tutti/tensor'
import { type ControlTensors, compileControls } from './sequence-controls.ts'
import { batchError, noIdError } from './sequence-errors.ts'
import type { StateRule } from './sequence-states.ts'

/** Request as the model of a sequence gets it: with control inputs, and with the states of its sequence once it executes. */
export class SequenceRequest implements StepRequest {
  readonly context: RequestContext
  readonly inputs: NamedTensor[]
  readonly requestedOutputs: readonly string[]
  readonly batchSize: number
  readonly retain?: () => () => void
  /** Names of the outputs that the client wants; empty means all. */
  readonly wanted: readonly string[]

  constructor(
    checked: StepRequest,
    controls: readonly NamedTensor[],
    states: readonly StateRule[],
  ) {
    this.context = checked.context
    this.inputs = [...checked.inputs, ...controls]
    this.wanted = checked.requestedOutputs
    this.requestedOutputs =
      this.wanted.length === 0 || states.length === 0
        ? this.wanted
        : [...new Set([...this.wanted, ...states.map(({ output }) => output)])]
    this.batchSize = checked.batchSize
    if (checked.retain !== undefined) this.retain = checked.retain
  }
}

/**
 * Makes the check of requests to a model with sequences. It checks what every model requires, then what the sequence scheduler
 * requires, with Triton's texts.
 */
export function compileSequenceCheck(
  config: ModelConfig,
  states: readonly StateRule[],
): (request: InferRequest) => StepRequest {
  const check = compileRequestCheck(config)
  const controls = compileControls(config)
  const refuse = compileRefusal(config.name, controls)
  const isIterative = config.sequence_batching?.iterative_sequence === true
  const identify = isIterative ? compileIds(controls) : (checked: StepRequest) => checked
  return (request) => {
    const checked = identify(check(request))
    refuse(checked)
    return new SequenceRequest(checked, controls.of(checked.context), states)
  }
}

/** Gives a request without a correlation id one of its own, and START. */
function compileIds({ correlation }: ControlTensors): (checked: StepRequest) => StepRequest {
  let last = 0n
  return (checked) => {
    const { context } = checked
    if (context.correlationId !== 0n && context.correlationId !== '') return checked
    last += 1n
    const correlationId = correlation?.datatype === 'BYTES' ? String(last) : last
    return { ...checked, context: { ...context, correlationId, sequenceStart: true } }
  }
}

/** Makes the function that turns a request into that of its next execution: without START and END, also in the control inputs. */
export function compileNext(
  config: ModelConfig,
  states: readonly StateRule[],
): (request: SequenceRequest) => SequenceRequest {
  const controls = compileControls(config)
  const added = new Set([...controls.notReady, ...states.map(({ initial }) => initial)].map(toName))
  return (request) => {
    const context = { ...request.context, sequenceStart: false, sequenceEnd: false }
    const inputs = request.inputs.filter(({ name }) => !added.has(name))
    const { batchSize, retain, wanted: requestedOutputs } = request
    const checked = { context, inputs, requestedOutputs, batchSize, ...(retain && { retain }) }
    return new SequenceRequest(checked, controls.of(context), states)
  }
}

const toName = ({ name }: NamedTensor): string => name

function compileRefusal(model: string, { correlation }: ControlTensors) {
  return ({ batchSize, context: { id, correlationId } }: StepRequest): void => {
    if (batchSize > 1) throw batchError(model)
    if (correlationId === 0n || correlationId === '') throw noIdError(model)
    if (correlation === undefined) return
    const isText = typeof correlationId === 'string'
    if (isText === (correlation.datatype === 'BYTES')) return
    const got = isText ? 'BYTES' : 'UINT64'
    const text = `${requestPrefix(id)}sequence batching control '${correlation.name}' data-type is '${got}', but model '${model}' expects '${correlation.datatype}'`
    throw new ServeError('DATATYPE_MISMATCH', text)
  }
}

/** Makes the check of warm-up samples. Each sample is a whole sequence, and may have control inputs and states of its own. */
export function compileWarmUpCheck(
  config: ModelConfig,
  states: readonly StateRule[],
): (request: InferRequest) => StepRequest {
  const check = compileRequestCheck(config)
  const controls = compileControls(config)
  return (request) => {
    // Without a correlation id, as in Triton: what a model keeps for it is no client's.
    const context = { ...request.context, sequenceStart: true, sequenceEnd: true }
    const added = [...controls.of(context), ...states.map(({ initial }) => initial)]
    const names = new Set(added.map(({ name }) => name))
    const own = request.inputs.filter(({ name }) => !names.has(name))
    const given = new Map(request.inputs.map((tensor) => [tensor.name, tensor]))
    const checked = check({ ...request, context, inputs: own })
    const inputs = added.map((tensor) => given.get(tensor.name) ?? tensor)
    return new SequenceRequest(checked, inputs, states)
  }
}
