import type { ResponseSink } from '@tutti/tensor'
import type { NestedCall, RequestDependencies } from '../calls/request-dependencies.ts'
import { EnsembleRecord } from './ensemble-record.ts'

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
  const record = new EnsembleRecord({ clock, observer, tracing: undefined }, call, sink)
  return [record, (batchSize) => record.begin(batchSize)]
}
