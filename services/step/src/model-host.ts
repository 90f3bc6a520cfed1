import type { HostCallOptions, HostRequest, ModelHost } from '@tutti/backends'
import { type Clock, openCallScope } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { parseModelVersion } from '@tutti/model-config'
import { type ModelControl, requireControl } from '@tutti/serving'
import {
  type ExecuteOptions,
  endingSink,
  type RequestContext,
  type ResponseSink,
  type StepRequest,
} from '@tutti/tensor'
import type { RouterCalls } from '@tutti/transport'
import type { ScheduledRequest } from './execution/execution.ts'
import type { ResolveFrom } from './step-options.ts'

/** Parts that a model host needs. */
export interface HostDependencies {
  readonly replica: string
  readonly clock: Clock
  /** Returns the routers; undefined until the step has joined them. */
  routers(): RouterCalls | undefined
  /** Returns the control of models; undefined where models may not load others. */
  control(): ModelControl | undefined
  /** Finds the running request that an engine was given as this object; undefined for a finished one, and for a warm-up. */
  findCaller(request: StepRequest): ScheduledRequest | undefined
}

const SEQUENCE_START = 1
const SEQUENCE_END = 2

/**
 * Makes the host through which models of a step call other models, by the routers of the repository, and load models in this
 * process.
 */
export function createModelHost(o: HostDependencies): ModelHost {
  return {
    infer: (request, sink, options) => inferAsCaller(o, request, sink, options),
    isReady: async (model, version, { signal }) => {
      const argument = { model, version: latest(version) ? '' : version }
      return (await connected(o).ask('ready', argument, { signal })) === true
    },
    load: async (model, { config, files }) =>
      requireControl(o.control()).load(model, { files, ...(config !== '' && { config }) }),
    unload: async (model, { unloadDependents }) =>
      requireControl(o.control()).unload(model, { unloadDependents }),
  }
}

/** Makes the host of one model. With namespaces it finds models of the caller's own repository first. */
export function namespacedHost(
  host: ModelHost,
  caller: string,
  resolve: ResolveFrom | undefined,
): ModelHost {
  if (resolve === undefined) return host
  return {
    ...host,
    infer: (request, sink, options) =>
      host.infer({ ...request, modelName: resolve(caller, request.modelName) }, sink, options),
    isReady: (model, version, options) => host.isReady(resolve(caller, model), version, options),
  }
}

/** @throws ServeError STEP_UNAVAILABLE */
function connected(o: HostDependencies): RouterCalls {
  const routers = o.routers()
  if (routers !== undefined) return routers
  throw new ServeError('STEP_UNAVAILABLE', `step '${o.replica}' has no router to call`)
}

function inferAsCaller(
  o: HostDependencies,
  request: HostRequest,
  sink: ResponseSink,
  options: HostCallOptions,
): void {
  const scope = openCallScope({ clock: o.clock, parent: options.signal })
  const { caller, batch = [] } = options
  // Those that run: none of a warm-up, and of a background call.
  const callers = [...(caller === undefined ? [] : [caller]), ...batch].flatMap(
    (each) => o.findCaller(each) ?? [],
  )
  const forget = whenAllAnswered(callers, (last) => scope.cancel(callerAnswered(last, o.clock)))
  const ending = endingSink(sink, (error) => {
    if (error !== undefined) for (const each of callers) each.callFailed(error)
    forget()
    scope.close()
  })
  try {
    const { modelName: model, modelVersion, inputs, requestedOutputs, retain } = request
    const target = { model, version: toVersion(model, modelVersion), revision: '' }
    const infer = {
      context: toContext(request),
      inputs,
      requestedOutputs,
      ...(retain && { retain }),
    }
    const { signal } = scope.context
    const observer = options.traced && o.findCaller(options.traced)?.options.observer
    const call = {
      signal,
      ...inherited(callers, options, o.clock),
      ...(observer && { observer }),
    }
    connected(o).executor(target).execute(infer, ending, call)
  } catch (error) {
    ending.fail(ServeError.from(error), 'no')
  }
}

/** Makes the options that a call inherits from its request. The key too, so that the logs of all its work belong together. */
function inherited(
  callers: readonly ScheduledRequest[],
  { isDecoupled, background }: HostCallOptions,
  clock: Clock,
): Omit<ExecuteOptions, 'signal'> {
  const asked = { step: '', attempt: 1, ...(isDecoupled && { isDecoupled }) }
  const [deepest] = callers.toSorted((a, b) => depth(b) - depth(a))
  if (background !== undefined) {
    const { model, timeoutMs } = background
    const origin = { requestKey: '', callers: [model], ...asked }
    return { origin, ...(timeoutMs > 0 && { deadlineAt: clock.now() + timeoutMs }) }
  }
  if (deepest === undefined) return { origin: { requestKey: '', callers: [], ...asked } }
  const { origin, trace, memory } = deepest.options
  const deadlineAt = Math.max(...callers.map((caller) => caller.deadlineAt))
  return {
    origin: {
      requestKey: origin?.requestKey ?? '',
      callers: [...(origin?.callers ?? []), deepest.model],
      ...asked,
    },
    ...(deadlineAt !== Number.POSITIVE_INFINITY && { deadlineAt }),
    ...(trace !== undefined && { trace }),
    ...(memory !== undefined && { memory }),
  }
}

function depth({ options }: ScheduledRequest): number {
  return options.origin?.callers?.length ?? 0
}

/** Calls `end` when the last of the callers is answered. @returns takes it back. */
function whenAllAnswered(
  callers: readonly ScheduledRequest[],
  end: (last: ScheduledRequest) => void,
): () => void {
  let open = callers.length
  const forgets = callers.map((caller) =>
    caller.whenAnswered(() => {
      open -= 1
      if (open === 0) end(caller)
    }),
  )
  return () => {
    for (const forget of forgets) forget()
  }
}

function toContext(request: HostRequest): RequestContext {
  const { requestId, correlationId, flags, priority, timeoutUs, parameters } = request
  return {
    id: requestId,
    correlationId,
    sequenceStart: (flags & SEQUENCE_START) !== 0,
    sequenceEnd: (flags & SEQUENCE_END) !== 0,
    priority,
    timeoutUs,
    parameters,
  }
}

function latest(version: string): boolean {
  return version === '' || version === '-1'
}

/** @returns 0 for the latest. @throws ServeError INVALID_VERSION; MODEL_NOT_FOUND for 0, which no version has. */
function toVersion(model: string, text: string): number {
  const version = latest(text) ? undefined : parseModelVersion(text)
  if (version !== 0) return version ?? 0
  throw new ServeError(
    'MODEL_NOT_FOUND',
    `Request for unknown model: '${model}' version ${text} is not found`,
    { details: { model, version: text } },
  )
}

/** Tells why a call ends whose caller has been answered: its time is over, or the answer is no longer wanted. */
function callerAnswered(caller: ScheduledRequest, clock: Clock): ServeError {
  if (caller.deadlineAt > clock.now()) return new ServeError('CANCELLED', 'the caller is answered')
  return new ServeError('DEADLINE_EXCEEDED', 'the time of the calling request is over')
}
