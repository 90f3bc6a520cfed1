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
  { clock, observerOf }: Pick<RequestDependencies, 'clock' | 'observerOf'>,
  call: NestedCall,
  sink: ResponseSink,
): readonly [ResponseSink, (batchSize: number) => void] {
  const observer = observerOf(call.target)
  const record = new EnsembleRecord({ clock, observer, tracing: undefined }, call)
  const counting: ResponseSink = {
    send: (response) => {
      record.responded(response)
      sink.send(response)
    },
    fail: (error, executed, times) => {
      record.failed(error)
      sink.fail(error, executed, times)
    },
    ready: () => sink.ready?.(),
  }
  return [counting, (batchSize) => record.begin(batchSize)]
}
