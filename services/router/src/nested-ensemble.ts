import { assert, ServeError } from '@tutti/errors'
import { checkInferRequest } from '@tutti/model-config'
import type { ResponseSink } from '@tutti/tensor'
import {
  EnsembleExecution,
  type ExecutionDependencies,
  type StepInvocation,
} from './ensemble-execution.ts'

/**
 * Runs a step whose model is an ensemble: a request of its own to the inner ensemble, under the same catalog. Never throws.
 */
export function executeNested(
  o: ExecutionDependencies,
  invocation: StepInvocation,
  sink: ResponseSink,
): void {
  try {
    const { entry, config } = invocation.target
    assert(entry.kind === 'ensemble', `${entry.name} is no ensemble`)
    assert(entry.plan !== undefined, `ensemble ${entry.name} is READY without a plan`)
    const request = toRequest(invocation)
    checkInferRequest(config, request)
    const scope = { ...invocation.scope, signal: invocation.signal }
    new EnsembleExecution(o, entry.plan, request, scope, sink).start(request.inputs)
  } catch (error) {
    sink.fail(ServeError.from(error), 'no')
  }
}

function toRequest(invocation: StepInvocation): Parameters<typeof checkInferRequest>[1] {
  const { context, requestedOutputs, inputs, tensors } = invocation
  return {
    context,
    requestedOutputs,
    inputs: inputs.map(({ name, datatype, shape }, i) => {
      const data = tensors[i]?.bytes
      assert(data !== undefined, `input ${name} has no bytes`)
      return { name, datatype, shape, data }
    }),
  }
}
