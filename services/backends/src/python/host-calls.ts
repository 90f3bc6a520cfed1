import { type Reason, ServeError } from '@tutti/errors'
import { type NamedTensor, ReadyGate, type ResponseSink, type StepResponse } from '@tutti/tensor'
import type { BackgroundCall, HostRequest, ModelHost } from '../engine.ts'
import { FrameMetaReader, type InstanceFrame, OP } from './frames.ts'
import type { DescribedResponse, InstanceSession } from './instance-session.ts'
import { readNames, readText } from './json-fields.ts'
import { parametersJson } from './request-context.ts'
import { parseObject, toErrorNumber, toParameters } from './wire-response.ts'

/** Responses of one call that may be on the way before the model has taken the first. */
const WINDOW = 4

export interface HostCallsOptions {
  readonly host: ModelHost | undefined
  /** Caller and bounds of calls that belong to no request. */
  readonly background: BackgroundCall
  /** Most open calls that belong to no request. */
  readonly backgroundCalls: number
}

/** Calls that one process makes to other models. */
export class HostCalls {
  readonly #options: HostCallsOptions
  readonly #open = new Map<number, ModelCall>()
  #inBackground = 0

  constructor(o: HostCallsOptions) {
    this.#options = o
  }

  /** Takes a frame, as `take` of FrameTaker. */
  take(frame: InstanceFrame, session: InstanceSession): boolean | Promise<void> {
    if (frame.op === OP.INFER) return this.#take(frame, session) ?? true
    if (frame.op === OP.TAKEN) this.#open.get(frame.id)?.taken()
    else if (frame.op === OP.INFER_END) this.#open.get(frame.id)?.end()
    else return false
    return true
  }

  /** Ends all calls, since the process has ended. Further responses are dropped. */
  close(): void {
    for (const call of this.#open.values()) call.end()
  }

  #take(frame: InstanceFrame, session: InstanceSession): Promise<void> | undefined {
    const record = new FrameMetaReader(frame.meta).response()
    const about = parseObject(record.json)
    return session.takeInputs(record, frame, (inputs, retain) => {
      const request = { ...toHostRequest(about, inputs), ...(retain && { retain }) }
      this.#begin(frame.id, about, request, session)
    })
  }

  #begin(
    id: number,
    about: Readonly<Record<string, unknown>>,
    request: HostRequest,
    session: InstanceSession,
  ): void {
    // The call views its inputs until it is over.
    const giveBack = request.retain?.()
    const { host, background, backgroundCalls } = this.#options
    const [caller, ...batch] = session.findCallers(about['callers'])
    const isBackground = caller === undefined
    const call = new ModelCall(
      (response) => session.sendResponse(id, response),
      request.modelName,
      () => {
        this.#open.delete(id)
        if (isBackground) this.#inBackground -= 1
        giveBack?.()
      },
    )
    this.#open.set(id, call)
    if (isBackground) this.#inBackground += 1
    const isDecoupled = about['decoupled'] === true
    const traced = session.findCaller(about['traced'])
    if (this.#inBackground > backgroundCalls) call.fail(tooMany(backgroundCalls), 'no')
    else if (host === undefined) call.fail(noHost(), 'no')
    else {
      const { signal } = call
      const owner = isBackground ? { background } : { caller, batch }
      host.infer(request, call, { signal, ...owner, traced, isDecoupled })
    }
  }
}

/** One call of a model: takes its responses to the process. */
class ModelCall implements ResponseSink {
  readonly #write: (response: DescribedResponse) => void
  readonly #model: string
  readonly #ended: () => void
  readonly #abort = new AbortController()
  readonly #gate = new ReadyGate()
  /** Responses that may be sent before another is taken. */
  #credit = WINDOW
  #isOver = false

  constructor(write: (response: DescribedResponse) => void, model: string, ended: () => void) {
    this.#write = write
    this.#model = model
    this.#ended = ended
  }

  get signal(): AbortSignal {
    return this.#abort.signal
  }

  send(response: StepResponse): void {
    if (this.#isOver) return
    this.#credit -= 1
    this.#write(describeResponse(response))
    // The response may lie in the inputs of the call, which end only now.
    if (response.final) this.#end()
  }

  fail(error: ServeError, executed: 'no' | 'maybe'): void {
    if (this.#isOver) return
    this.#end()
    const isRefused = executed === 'no' ? !ANSWERED.has(error.reason) : isBadRequest(error)
    this.#write(describeFailure(error, this.#model, isRefused))
  }

  ready(): Promise<void> | undefined {
    const isWaiting = this.#credit <= 0 && !this.#isOver && !this.signal.aborted
    return isWaiting ? this.#gate.wait() : undefined
  }

  /** Notes that the model has taken a response. */
  taken(): void {
    this.#credit += 1
    this.#gate.open()
  }

  /** Ends the call, of which the model wants nothing more. */
  end(): void {
    this.#abort.abort(new ServeError('CANCELLED', 'the model wants nothing more of the call'))
    this.#gate.open()
  }

  #end(): void {
    this.#isOver = true
    this.#gate.open()
    this.#ended()
  }
}

/** Makes the error for a server that takes no calls from models. */
export function noHost(): ServeError {
  return new ServeError('STEP_UNAVAILABLE', 'this server takes no calls from models')
}

function tooMany(most: number): ServeError {
  const text = `got a further call that belongs to no request, want at most ${most} open ones of an instance (--backend-config=python,background-calls=N)`
  return new ServeError('OVERLOADED', text)
}

/** Reasons for which Triton has one text of its own. */
const ABSENT: ReadonlySet<Reason> = new Set([
  'MODEL_NOT_FOUND',
  'MODEL_NOT_READY',
  'INVALID_VERSION',
])
/** Reasons of failures after Triton has accepted the request, as failures of models are. Earlier refusals have a prefix. */
const ANSWERED: ReadonlySet<Reason> = new Set([
  'QUEUE_TIMEOUT',
  'CANCELLED',
  'DEADLINE_EXCEEDED',
  'ENGINE_STOPPED',
])

/** Reasons of requests that do not fit the called model. */
const UNFIT: ReadonlySet<Reason> = new Set([
  'INVALID_PARAMETER',
  'INVALID_REQUEST',
  'INVALID_TENSOR_DATA',
  'INCOMPLETE_STRING',
  'SHAPE_MISMATCH',
  'DATATYPE_MISMATCH',
])

/**
 * Tells whether a request was refused as invalid, also by another process. A request that an ensemble made of its step is no
 * longer the model's.
 */
function isBadRequest({ reason, details }: ServeError): boolean {
  return (UNFIT.has(reason) || ABSENT.has(reason)) && details.step === undefined
}

/** Returns Triton's text. @param isRefused - true if the called model never had the request. */
function textOf({ reason, message }: ServeError, model: string, isRefused: boolean): string {
  if (!isRefused) return message
  const text = ABSENT.has(reason)
    ? `Failed for execute the inference request. Model '${model}' is not ready.`
    : message
  return `Model ${model} - Error when running inference: ${text}`
}

function describeResponse({ outputs, parameters, final, retain }: StepResponse): DescribedResponse {
  const members = parameters.size > 0 ? [`"parameters":${parametersJson(parameters)}`] : []
  return { outputs, isFinal: final, members, retain }
}

function describeFailure(error: ServeError, model: string, isRefused: boolean): DescribedResponse {
  const described = { message: textOf(error, model, isRefused), code: toErrorNumber(error.code) }
  const members = [`"error":${JSON.stringify(described)}`]
  return { outputs: [], isFinal: true, members, retain: undefined }
}

function toHostRequest(
  about: Readonly<Record<string, unknown>>,
  inputs: readonly NamedTensor[],
): HostRequest {
  const flags = about['flags']
  const correlation = Object(about['correlation_id'])
  return {
    modelName: readText(about, 'model'),
    modelVersion: readText(about, 'version'),
    requestId: readText(about, 'id'),
    correlationId:
      typeof correlation.text === 'string' ? correlation.text : toBigInt(correlation.number),
    flags: typeof flags === 'number' ? flags : 0,
    timeoutUs: toBigInt(about['timeout']),
    priority: toBigInt(about['priority']),
    parameters: toParameters(about['parameters']),
    inputs,
    requestedOutputs: readNames(about, 'outputs'),
  }
}

function toBigInt(text: unknown): bigint {
  return typeof text === 'string' && /^\d{1,20}$/.test(text) ? BigInt(text) : 0n
}
