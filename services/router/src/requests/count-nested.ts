import type { ResponseSink } from '@tutti/tensor'
import type { NestedCall, RequestDependencies } from './request-dependencies.ts'
import { EnsembleRecord } from './requests.ts'

/**
 * Counts a request to an ensemble that is a step of another one, in its own statistics and metrics, as one that a client calls. It has
 * no span of its own: its steps are under that of the outer one.
 *
 * @returns where its responses are to go, and what is to be called when it begins.
 */
export function countNested(
  { clock, recorderOf }: Pick<RequestDependencies, 'clock' | 'recorderOf'>,
  { target, context }: NestedCall,
  sink: ResponseSink,
): readonly [ResponseSink, (batchSize: number) => void] {
  const recorder = recorderOf(target)
  const record = new EnsembleRecord({ clock, tracing: undefined }, target, recorder, context)
  const to = recorder?.watch?.(sink, context.trace) ?? sink
  const counting: ResponseSink = {
    send: (response) => {
      if (response.final) record.succeeded(response.times)
      to.send(response)
    },
    fail: (error, executed, times) => {
      record.failed(error)
      to.fail(error, executed, times)
    },
    ready: () => to.ready?.(),
  }
  return [counting, (batchSize) => record.begin(batchSize)]
}
