import { ServeError } from '@tutti/errors'
import type { Executor, FindExecutor, ModelTarget } from '@tutti/tensor'

/** The replicas of a test, by name. One that is not there does not respond. */
export class ReplicaExecutors extends Map<string, FindExecutor> {
  /** To be given to a router. */
  readonly executor = (target: ModelTarget, replica: string): Executor =>
    this.get(replica)?.(target) ?? unreachable(replica, target)
}

function unreachable(replica: string, { model }: ModelTarget): Executor {
  const details = { model, replica }
  const text = `replica '${replica}' does not respond`
  return {
    execute: (_request, sink) =>
      sink.fail(new ServeError('STEP_UNAVAILABLE', text, { details }), 'no'),
  }
}

/** Answers with the inputs as outputs of that name. */
export function echoing(name: string): FindExecutor {
  return () => ({
    execute: ({ inputs }, sink) => {
      const outputs = inputs.map((input) => ({ ...input, name }))
      sink.send({ index: 0, final: true, outputs, parameters: new Map() })
    },
  })
}
