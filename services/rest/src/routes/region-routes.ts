import { ServeError } from '@tutti/errors'
import { parseJson } from '@tutti/protocol'
import { type ControlCalls, RegionCalls } from '@tutti/serving'
import {
  type CudaRequest,
  HANDLE_BYTES,
  type RegionKind,
  type SystemRequest,
} from '@tutti/shared-memory'
import { emptyReply, jsonReply, type RestReply } from '../answers/rest-reply.ts'
import { refuseForeignPage } from '../call/refuse-foreign-page.ts'
import type { RestCall } from '../call/rest-call.ts'
import type { RestRoute } from '../call/rest-route.ts'

type Answer = (kind: RegionKind, call: RestCall) => RestReply | Promise<RestReply>

/** Builds the routes about shared memory of clients. */
export function regionRoutes(control: ControlCalls): readonly RestRoute[] {
  const calls = new RegionCalls(control)
  const status: Answer = (kind, call) => jsonReply(calls.status(kind, regionOf(call), call.caller))
  const register: Answer = async (kind, call) => {
    checkChange(calls, call)
    const { region: name } = call.parameters
    if (name === undefined) {
      const text = `'region name' is necessary to register ${kind} shared memory region`
      throw new ServeError('INVALID_REQUEST', text)
    }
    const body = await call.body()
    if (kind === 'system') {
      await calls.register(parseRegion(name, body), call.caller)
    } else {
      await calls.registerCuda(parseCudaRegion(name, body), call.caller)
    }
    return emptyReply(200)
  }
  const unregister: Answer = async (kind, call) => {
    checkChange(calls, call)
    await calls.unregister(kind, regionOf(call), call.caller)
    return emptyReply(200)
  }
  return (['system', 'cuda'] as const).flatMap((kind) => [
    ...routesOf(kind, 'status', {
      method: 'GET',
      document: {
        summary: 'The regions of shared memory that are registered',
        answer: 'Regions',
      },
      answer: status,
    }),
    ...routesOf(kind, 'register', {
      method: 'POST',
      document: { summary: 'Registers shared memory of the client', body: 'RegionRequest' },
      answer: register,
    }),
    ...routesOf(kind, 'unregister', {
      method: 'POST',
      document: { summary: 'Forgets a region, or all that no request in work writes into' },
      answer: unregister,
    }),
  ])
}

interface RegionRoute extends Pick<RestRoute, 'method' | 'document'> {
  readonly answer: Answer
}

/** With and without the name of a region. */
function routesOf(
  kind: RegionKind,
  action: string,
  { method, document, answer }: RegionRoute,
): readonly RestRoute[] {
  const path = `/v2/${kind}sharedmemory`
  return [`${path}/${action}`, `${path}/region/:region(^.+$)/${action}`].map((one) => ({
    method,
    path: one,
    group: 'shared-memory',
    admission: 'control',
    // Without a name nothing is registered, and memory of GPUs only where they are.
    document: kind === 'cuda' || one.endsWith('sharedmemory/register') ? 'none' : document,
    answer: (call) => answer(kind, call),
  }))
}

function checkChange(calls: RegionCalls, call: RestCall): void {
  calls.check(call.caller)
  refuseForeignPage(call.caller.headers)
}

function regionOf({ parameters: { region = '' } }: RestCall): string {
  return region
}

/** Reads the body of a request to register system shared memory. @throws ServeError with Triton's text. */
export function parseRegion(name: string, body: Uint8Array): SystemRequest {
  const { value } = parseJson(body)
  const key = asText(requireField(value, 'key'))
  const offset = fieldOf(value, 'offset')
  return {
    name,
    key,
    offset: offset === undefined ? 0 : asCount(offset),
    byteSize: asCount(requireField(value, 'byte_size')),
  }
}

/** Reads the body of a request to register CUDA shared memory. @throws ServeError with Triton's text. */
export function parseCudaRegion(name: string, body: Uint8Array): CudaRequest {
  const { value } = parseJson(body)
  const text = asText(memberOf(requireField(value, 'raw_handle'), 'b64'))
  const deviceId = asCount(memberOf(value, 'device_id'))
  const byteSize = asCount(memberOf(value, 'byte_size'))
  const handle = Buffer.from(text, 'base64')
  if (handle.byteLength === HANDLE_BYTES) return { name, handle, deviceId, byteSize }
  throw new ServeError(
    'INVALID_REQUEST',
    "'raw_handle' must be a valid base64 encoded cudaIpcMemHandle_t",
  )
}

function fieldOf(body: unknown, name: string): unknown {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return undefined
  return Object.entries(body).find(([key]) => key === name)?.[1]
}

function requireField(body: unknown, name: string): unknown {
  const value = fieldOf(body, name)
  if (value !== undefined) return value
  const text = `Shared memory register request has no '${name}' field`
  throw new ServeError('INVALID_REQUEST', text)
}

function memberOf(body: unknown, name: string): unknown {
  const value = fieldOf(body, name)
  if (value !== undefined) return value
  throw malformed(`attempt to access non-existing object member '${name}'`)
}

function asText(value: unknown): string {
  if (typeof value === 'string') return value
  throw malformed('attempt to access JSON non-string as string')
}

function asCount(value: unknown): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0) return value
  throw malformed('attempt to access JSON non-unsigned-integer as unsigned-integer')
}

function malformed(text: string): ServeError {
  return new ServeError('MALFORMED_MESSAGE', text, { code: 'INTERNAL' })
}
