import { constantData, type EnsemblePlan, type PlanStep } from '@tutti/graph'
import { encodeElements, type NamedTensor, type ResponseSink } from '@tutti/tensor'
import { isOver } from './fallback-call.ts'
import type { ModelCall } from './model-call.ts'
import { noteStep } from './note-step.ts'
import { afterStep } from './observe-step.ts'
import type { RequestDependencies } from './request-dependencies.ts'
import type { StepCall } from './step-call.ts'

/**
 * Answers for a step that has failed for good with values that stand in for its outputs, unless its request has ended meanwhile, or
 * has a response.
 *
 * @param ensemble - plan of the ensemble that has the step.
 * @param step - its outputs have a batch dimension where it is batched; those of a step for each item have none.
 */
export function withDefault(
  ensemble: EnsemblePlan,
  { isBatched, call: { onError } }: Pick<PlanStep, 'isBatched' | 'call'>,
  next: StepCall,
): StepCall {
  if (onError?.kind !== 'default') return next
  const values = onError.outputs.map(({ name, value: { datatype, shape, value } }) => {
    return { name, datatype, shape, data: encodeElements(datatype, value) }
  })
  return (o, call, sink) => {
    let hasResponded = false
    const answering: ResponseSink = {
      send: (response) => {
        hasResponded = true
        sink.send(response)
      },
      fail: (error, executed, times) => {
        if (hasResponded || isOver(o, call)) return sink.fail(error, executed, times)
        noteDefault(ensemble, o, call)
        const outputs = values.map((value) => (isBatched ? toRows(value, call) : value))
        const rest = { parameters: new Map(), ...(times !== undefined && { times }) }
        sink.send({ index: 0, final: true, outputs, ...rest })
      },
      ready: () => sink.ready?.(),
    }
    next(o, call, answering)
  }
}

/** A model that batches makes a row for each of its inputs. */
function toRows(value: NamedTensor, { target, request }: ModelCall): NamedTensor {
  const declared = target.config.output.find(({ name }) => name === value.name)
  if (declared?.dims.length !== value.shape.length) return value
  const [rows = 1] = request.inputs[0]?.shape ?? []
  const shape = [rows, ...value.shape]
  return { ...value, shape, data: constantData(value, shape) }
}

function noteDefault(plan: EnsemblePlan, o: RequestDependencies, call: ModelCall): void {
  const { ensemble, step, target, context } = call
  noteStep(o, call, { what: 'defaulted' })
  context.observer?.passed?.(afterStep(plan, call), 'defaulted', '')
  const { name: model } = target.entry
  const attributes = { 'tutti.model': model, 'tutti.ensemble': ensemble, 'tutti.step': step }
  o.tracing
    ?.startSpan(`default ${step}`, { kind: 'internal', parent: context.trace, attributes })
    .end()
}
