import { randomBytes } from 'node:crypto'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { openTestServer, type TestServer } from '@tutti/grpc/testing'
import { startRestServer } from '@tutti/rest'
import { type ModelScript, response, type ScriptedModel } from '@tutti/serving/testing'
import { type OpenCudaMemory, SharedRegions } from '@tutti/shared-memory'
import type { Test } from 'tap'

/** A model that echoes its request three times. */
export const DECOUPLED = { isDecoupled: true, script: thrice }

/** Echoes its request three times, and ends with an empty response. */
async function* thrice(...[request]: Parameters<ModelScript>): ReturnType<ModelScript> {
  for (let index = 0; index < 3; index++) yield response(request, request.inputs, { final: false })
  yield response(request, [])
}

export function floats(...values: readonly number[]): Uint8Array {
  return new Uint8Array(Float32Array.from(values).buffer)
}

export function at(offset: number, byteSize: number, region = 'r') {
  return {
    shared_memory_region: { string_param: region },
    shared_memory_offset: { int64_param: String(offset) },
    shared_memory_byte_size: { int64_param: String(byteSize) },
  }
}

export function restAt(offset: number, byteSize: number, region = 'r') {
  return {
    shared_memory_region: region,
    shared_memory_offset: offset,
    shared_memory_byte_size: byteSize,
  }
}

/** Opens a server with the shared memory region `r`: four floats, then zeros. @param sizeBytes - the region's size. */
export async function openShared(
  t: Test,
  models: Readonly<Record<string, ScriptedModel>> = { m: {} },
  sizeBytes = 64,
  openCudaMemory?: OpenCudaMemory,
) {
  const served = await openTestServer(t, models)
  const path = `/dev/shm/tutti_test_${randomBytes(6).toString('hex')}`
  const memory = Buffer.alloc(sizeBytes)
  memory.set(floats(1, 2, 3, 4))
  writeFileSync(path, memory)
  const regions = new SharedRegions(openCudaMemory)
  served.backend.regions = regions
  regions.register({
    name: 'r',
    key: path.slice('/dev/shm'.length),
    offset: 0,
    byteSize: sizeBytes,
  })
  const rest = await startRestServer({ backend: served.backend, address: '127.0.0.1', port: 0 })
  t.teardown(async () => {
    await rest.close()
    regions.close()
    rmSync(path)
  })
  const url = `http://127.0.0.1:${rest.port}/v2`
  return { served, regions, url, memory: () => readFileSync(path) }
}

interface StreamAnswer {
  readonly error_message: string
  readonly infer_response: { readonly raw_output_contents: readonly Buffer[] }
}

/** Sends requests on one stream and collects the answers until its end. */
export function streamObjects(
  { client }: TestServer,
  ...requests: readonly object[]
): Promise<readonly StreamAnswer[]> {
  return new Promise((resolve, reject) => {
    const answers: StreamAnswer[] = []
    const call = client.objects.ModelStreamInfer()
    call.on('data', (answer: StreamAnswer) => answers.push(answer))
    call.on('error', reject)
    call.on('end', () => resolve(answers))
    for (const request of requests) call.write({ model_name: 'm', ...request })
    call.end()
  })
}
