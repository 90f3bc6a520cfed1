import { type FlagTable, type FlagValues, type ProcessEnvironment, printable } from '@tutti/chassis'
import { parseSteps, type ToldSteps } from '@tutti/console'
import { isReason, ServeError } from '@tutti/errors'
import {
  type InferResponse,
  type OutgoingRequest,
  type ReceivedMetadata,
  STEPS_HEADER,
  STEPS_OF_FAILURES,
  STEPS_PARAMETER,
} from '@tutti/protocol'
import type { Parameters } from '@tutti/tensor'
import { REQUEST_FLAGS } from '../client/infer-flags.ts'
import type { ModelClient } from '../client/model-client.ts'
import { readInputs, readVersion } from '../client/read-inputs.ts'
import { FORMAT_FLAG } from '../command/with-flags.ts'
import type { RequestTrace } from './request-trace.ts'
import { renderTraceResult } from './trace-result.ts'
import { renderTrace } from './trace-text.ts'

/** Flags of a traced request, and of the format of its trace. */
export const TRACED_FLAGS = { ...REQUEST_FLAGS, format: FORMAT_FLAG } as const satisfies FlagTable

/** Options of a client that asks its server for the times of steps, also where one fails. */
export const ASK_FOR_STEPS = { headers: { [STEPS_HEADER]: STEPS_OF_FAILURES } }

/**
 * Parameter that makes a stream end with a response, which carries the steps' times, even if its model ends the stream without
 * one.
 */
const FINAL_RESPONSE: Parameters = new Map([
  ['triton_enable_empty_final_response', { kind: 'bool', value: true }],
])

/** The model of a traced request, its flags, and the environment to print to. */
export interface TraceOptions {
  readonly model: string
  readonly flags: FlagValues<typeof TRACED_FLAGS>
  readonly environment: ProcessEnvironment
}

/**
 * Sends one request and prints its trace.
 *
 * @param client - a client that was opened with ASK_FOR_STEPS; it is closed here.
 * @throws ServeError UNSUPPORTED if the server gives no times of steps; the error of a request that has failed, after its trace.
 */
export async function traceModel(
  client: ModelClient,
  { model, flags, environment }: TraceOptions,
): Promise<void> {
  try {
    const version = readVersion(flags)
    const metadata = await client.metadata(model, version)
    const inputs = await readInputs(metadata, flags, environment)
    const request = { modelName: model, modelVersion: version, inputs }
    const { error, ...trace } = await traceRequest(client, request, metadata)
    environment.out(flags.format === 'json' ? renderTraceResult(trace) : renderTrace(trace))
    if (error === undefined) return
    const { reason, message } = error
    throw new ServeError(isReason(reason) ? reason : 'INVALID_REQUEST', message)
  } finally {
    client.close()
  }
}

async function traceRequest(
  client: ModelClient,
  request: OutgoingRequest,
  metadata: ReceivedMetadata,
): Promise<RequestTrace & Pick<ToldSteps, 'error'>> {
  const asked = metadata.isDecoupled ? { ...request, parameters: FINAL_RESPONSE } : request
  const startedAt = performance.now()
  let last: InferResponse | undefined
  for await (const response of client.infer(asked, metadata)) last = response
  const clientMs = performance.now() - startedAt
  return {
    model: last?.modelName || request.modelName,
    version: last?.modelVersion ?? '',
    clientMs,
    ...readSteps(last),
  }
}

/** @throws ServeError UNSUPPORTED if the server does not say it. */
function readSteps(response: InferResponse | undefined): ToldSteps {
  const told = response?.parameters.get(STEPS_PARAMETER)
  if (told?.kind !== 'string') {
    const text =
      "the model answered, but the server did not say what its steps took: want 'tutti serve' or 'tutti router' of this version"
    throw new ServeError('UNSUPPORTED', text)
  }
  try {
    const steps = parseSteps(told.value)
    // Even a model alone has one.
    if (steps.spans.length > 0) return steps
    throw new Error('no spans')
  } catch (cause) {
    const text = `the server says what its steps took in a form of another version: ${printable(told.value.slice(0, 80))}`
    throw new ServeError('MALFORMED_MESSAGE', text, { cause })
  }
}
