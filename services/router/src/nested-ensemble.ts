import { assert, ServeError } from '@tutti/errors'
import { checkInferRequest } from '@tutti/model-config'
import {
  EnsembleExecution,
  type ExecutionDependencies,
  type StepInvocation,
  type StepSink,
} from './ensemble-execution.ts'

/**
 * Runs a step whose model is an ensemble: a request of its own to the inner ensemble, under the same catalog.
 * Resolves once the inner request has ended; never rejects.
 */
export function executeNested(
  o: ExecutionDependencies,
  invocation: StepInvocation,
  sink: StepSink,
): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  try {
    const { entry, config } = invocation.target
    assert(entry.kind === 'ensemble', `${entry.name} is no ensemble`)
    assert(entry.plan !== undefined, `ensemble ${entry.name} is READY without a plan`)
    const request = toRequest(invocation)
    checkInferRequest(config, request)
    const scope = { ...invocation.scope, signal: invocation.signal }
    let index = 0
    const execution = new EnsembleExecution(o, entry.plan, request, scope, {
      emitted: (outputs, parameters, final) => {
        const times = final ? { times: { ...execution.times, transferNs: 0 } } : {}
        sink.responded({ index: index++, final, outputs, parameters, ...times })
        if (final) resolve()
      },
      room: () => sink.room?.(),
      failed: (error) => {
        sink.failed(error, 'maybe', execution.times)
        resolve()
      },
    })
    execution.start(request.inputs)
  } catch (error) {
    sink.failed(ServeError.from(error), 'no', undefined)
    resolve()
  }
  return promise
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
