import type { StepTraces } from '@tutti/tensor'

/** Traces the steps of one request twice, for its client and for a file say. @param first - undefined: the second alone. */
export function joinTraces(first: StepTraces | undefined, second: StepTraces): StepTraces {
  if (first === undefined) return second
  return {
    begin: (model, request, sink) => {
      const [outer, firstBelow] = first.begin(model, request, sink)
      const [inner, secondBelow] = second.begin(model, request, outer)
      return [inner, joinTraces(firstBelow, secondBelow)]
    },
  }
}
