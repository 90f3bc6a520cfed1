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
    checkInferRequest(config, invocation)
    const scope = { ...invocation.scope, signal: invocation.signal }
    new EnsembleExecution(o, entry.plan, invocation, scope, sink).start(invocation.inputs)
  } catch (error) {
    sink.fail(ServeError.from(error), 'no')
  }
}
