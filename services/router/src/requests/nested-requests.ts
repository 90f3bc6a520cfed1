import { type Clock, openCallScope } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { decorateModel, observeModel } from '@tutti/serving'
import { type Executor, endingSink, type FindExecutor, type ModelTarget } from '@tutti/tensor'
import type { Requests } from './requests.ts'

/** The bounds of the requests that models make to other models (BLS). */
export interface NestingBounds {
  /** Models that may have called one another up to a request. */
  readonly maxDepth: number
  /** Such requests at the same time. */
  readonly maxRequests: number
}

export const NESTING_DEFAULTS: NestingBounds = { maxDepth: 10, maxRequests: 1024 }

type Execute = Parameters<Executor['execute']>

export interface NestedDependencies {
  readonly bounds: NestingBounds
  readonly clock: Clock
  /** @throws ServeError as for a client's request. '' is the latest version. */
  readonly resolve: Requests['resolve']
}

/**
 * Takes the requests that models make while they execute. They are treated like a client's, but for three things: they belong
 * to a request that is admitted already, so the servers' limits do not count them and this one does; they are taken while the
 * router drains; and how deep they nest is bounded.
 */
export function createNestedExecutors({
  bounds,
  clock,
  resolve,
}: NestedDependencies): FindExecutor {
  let open = 0
  const execute = (target: ModelTarget, ...[request, sink, options]: Execute): void => {
    const { signal: parent, deadlineAt, trace, origin, observer, memory } = options
    const remainingMs = deadlineAt === undefined ? undefined : deadlineAt - clock.now()
    const scope = openCallScope({ clock, parent, remainingMs, trace, memory })
    open += 1
    const end = (): void => {
      scope.close()
      open -= 1
    }
    const ending = endingSink(sink, end)
    try {
      if (open > bounds.maxRequests) throw tooMany(bounds.maxRequests)
      const { callers = [], isDecoupled } = origin ?? {}
      const { model, version } = target
      if (callers.length > bounds.maxDepth) throw tooDeep(model, callers, bounds.maxDepth)
      const found = resolve(model, version === 0 ? '' : String(version))
      if (found.isDecoupled && isDecoupled !== true) throw decoupled(model)
      const { context } = scope
      if (observer === undefined) return found.execute(request, ending, context, callers)
      const called = decorateModel(found, (...asked) => found.execute(...asked, callers))
      observeModel(called, observer, { clock }).execute(request, ending, context)
    } catch (error) {
      ending.fail(ServeError.from(error), 'no')
    }
  }
  return (target) => ({ execute: (...nested) => execute(target, ...nested) })
}

function tooDeep(model: string, callers: readonly string[], maxDepth: number): ServeError {
  const chain = [...callers, model].map((name) => `'${name}'`).join(' calls ')
  return new ServeError(
    'NESTING_TOO_DEEP',
    `${chain}: ${callers.length} calls deep, want at most ${maxDepth}`,
    { details: { model } },
  )
}

function tooMany(bound: number): ServeError {
  const text = `router is overloaded: ${bound} requests of models are in flight, the bound is ${bound}`
  return new ServeError('OVERLOADED', text)
}

/** Makes the error for a decoupled model, with Triton's text. */
function decoupled(model: string): ServeError {
  return new ServeError(
    'UNSUPPORTED',
    `Model ${model} is using the decoupled. The current BLS request call doesn't support models using the decoupled transaction policy. Please use 'decoupled=True' argument to the 'exec' or 'async_exec' calls for decoupled models.'`,
    { details: { model } },
  )
}
