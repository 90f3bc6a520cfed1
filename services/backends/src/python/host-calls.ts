import { ServeError } from '@tutti/errors'
import type { NamedTensor, StepRequest } from '@tutti/tensor'
import type { HostRequest, HostResponse, ModelHost } from '../engine.ts'
import { type Frame, FrameParser, OP } from './frames.ts'
import type { DescribedResponse, InstanceSession } from './instance-session.ts'
import { readNames, readText } from './json-fields.ts'
import { parametersJson } from './request-context.ts'
import { parseObject, readParameters, toErrorNumber } from './wire-response.ts'

/** Responses of one call that may be on the way before the model has taken the first. */
const WINDOW = 4
interface OpenCall {
  readonly abort: AbortController
  /** Responses that may be sent before another is taken. */
  credit: number
  wake: (() => void) | undefined
}

/** A call as a model made it. */
interface CallOfModel {
  readonly request: HostRequest
  readonly callers: readonly StepRequest[]
  readonly isDecoupled: boolean
}

/** The calls that one process makes to other models. */
export class HostCalls {
  readonly #host: ModelHost | undefined
  readonly #open = new Map<number, OpenCall>()

  constructor(host: ModelHost | undefined) {
    this.#host = host
  }

  /** @returns true if the frame was one of these. @throws ServeError MALFORMED_MESSAGE */
  take(frame: Frame, session: InstanceSession): boolean {
    if (frame.op === OP.INFER) this.#begin(frame, session)
    else if (frame.op === OP.TAKEN) this.#taken(frame.id)
    else if (frame.op === OP.INFER_END) end(this.#open.get(frame.id))
    else return false
    return true
  }

  /** The process has ended: nobody takes what still comes. */
  close(): void {
    for (const call of this.#open.values()) end(call)
  }

  #begin(frame: Frame, session: InstanceSession): void {
    const record = new FrameParser(frame.meta).response()
    const about = parseObject(record.json)
    const request = toHostRequest(about, session.takeInputs(record, frame))
    const call: OpenCall = { abort: new AbortController(), credit: WINDOW, wake: undefined }
    this.#open.set(frame.id, call)
    const callers = session.findCallers(about['callers'])
    const isDecoupled = about['decoupled'] === true
    void this.#run(frame.id, call, { request, callers, isDecoupled }, session)
  }

  async #run(id: number, call: OpenCall, o: CallOfModel, session: InstanceSession): Promise<void> {
    let isOver = false
    try {
      for await (const response of this.#responses(o, call.abort.signal)) {
        isOver = response.final
        session.sendResponse(id, describe(response, o.request.modelName))
        if (isOver) break
        call.credit -= 1
        if (call.credit <= 0) await untilTaken(call)
      }
      if (!isOver) throw new ServeError('INTERNAL', 'the call ended without a final response')
    } catch (error) {
      session.sendResponse(id, describe(failure(ServeError.from(error)), o.request.modelName))
    } finally {
      this.#open.delete(id)
    }
  }

  async *#responses(o: CallOfModel, signal: AbortSignal): AsyncIterable<HostResponse> {
    const { request, callers, isDecoupled } = o
    const [caller, ...batch] = callers
    if (caller === undefined) {
      throw new ServeError(
        'INVALID_REQUEST',
        "BLS is supported only during the 'execute' function.",
      )
    }
    if (this.#host === undefined) throw noHost()
    yield* this.#host.infer(request, { signal, caller, batch, isDecoupled })
  }

  #taken(id: number): void {
    const call = this.#open.get(id)
    if (call === undefined) return
    call.credit += 1
    call.wake?.()
    call.wake = undefined
  }
}

/** Nothing more of it is wanted; who waits for room learns of it too. */
function end(call: OpenCall | undefined): void {
  call?.abort.abort(cancelled())
  call?.wake?.()
}

/** Resolves when there is room for a response, or none is wanted. */
async function untilTaken(call: OpenCall): Promise<void> {
  if (call.abort.signal.aborted) return
  await new Promise<void>((resolve) => (call.wake = resolve))
}

/** What is said where models may not ask for anything of the server. */
export function noHost(): ServeError {
  return new ServeError('STEP_UNAVAILABLE', 'nobody here takes calls of models')
}

function cancelled(): ServeError {
  return new ServeError('CANCELLED', 'the model wants nothing more of the call')
}

function failure(error: ServeError): HostResponse {
  return { outputs: [], parameters: new Map(), final: true, error }
}

/** The text that Triton gives for a model that is not there; others pass as they are. */
function textOf({ reason, message }: ServeError, model: string): string {
  const isAbsent = reason === 'MODEL_NOT_FOUND' || reason === 'MODEL_NOT_READY'
  if (!isAbsent) return message
  return `Failed for execute the inference request. Model '${model}' is not ready.`
}

function describe(
  { outputs, parameters, final, error }: HostResponse,
  model: string,
): DescribedResponse {
  const members: string[] = []
  if (parameters.size > 0) {
    members.push(`"parameters":${JSON.stringify(parametersJson(parameters))}`)
  }
  if (error !== undefined) {
    const code = toErrorNumber(error.code)
    members.push(`"error":${JSON.stringify({ message: textOf(error, model), code })}`)
  }
  return { outputs: error === undefined ? outputs : [], isFinal: final, members }
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
    parameters: readParameters(about['parameters']),
    inputs,
    requestedOutputs: readNames(about, 'outputs'),
  }
}

function toBigInt(text: unknown): bigint {
  return typeof text === 'string' && /^\d{1,20}$/.test(text) ? BigInt(text) : 0n
}
