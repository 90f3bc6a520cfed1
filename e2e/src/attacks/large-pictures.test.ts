import { mkdirSync, rmdirSync, writeFileSync } from 'node:fs'
import { connect } from 'node:http2'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { until } from '@tutti/chassis/testing'
import { encodeInferRequest } from '@tutti/protocol'
import t, { type Test } from 'tap'
import { memoryRoot, withoutMemoryLimits } from '../faults/memory.ts'
import { restCall } from '../rest-call.ts'
import { LOOPBACK, type Serving, startTutti } from '../serving.ts'

t.setTimeout(300_000)

const LIMIT_BYTES = 2 * 2 ** 30
const ENSEMBLE = 'ens_face_restoration_v2.1'

/** A `tutti serve` that the system ends if it takes more than 2 GiB. */
async function serveWithin(t: Test): Promise<Serving> {
  const [root, limit] = memoryRoot() ?? ['', '']
  const group = join(root, `tutti-attacks-${process.pid}`)
  mkdirSync(group)
  writeFileSync(join(group, limit), String(LIMIT_BYTES))
  const flags = [
    '--model-repository=model_repository',
    '--model-control-mode=explicit',
    `--load-model=${ENSEMBLE}`,
  ]
  const enter = `echo $$ > ${join(group, 'cgroup.procs')}; exec "$@"`
  const { serving } = await startTutti(['serve', ...flags, ...LOOPBACK], {
    within: ['sh', '-c', enter, 'sh'],
  })
  t.teardown(async () => {
    await serving.process.stop('SIGKILL')
    await until('the group is empty', () => {
      try {
        rmdirSync(group)
        return true
      } catch {
        return false
      }
    })
  })
  return serving
}

/** Sends a square picture of zeros, compressed. @returns the status of gRPC. */
async function send({ grpcPort }: Serving, side: number): Promise<string> {
  const data = Buffer.alloc(side * side * 3)
  const input = { name: 'raw_image', datatype: 'UINT8', shape: [side, side, 3], data } as const
  const parts = { modelName: ENSEMBLE, modelVersion: '', id: '', parameters: new Map() }
  const message = gzipSync(encodeInferRequest({ ...parts, inputs: [input], outputs: [] }))
  const head = Buffer.of(1, 0, 0, 0, 0)
  head.writeUInt32BE(message.byteLength, 1)
  const session = connect(`http://127.0.0.1:${grpcPort}`)
  session.on('error', () => {})
  try {
    const stream = session.request({
      ':method': 'POST',
      ':path': '/inference.GRPCInferenceService/ModelInfer',
      'content-type': 'application/grpc',
      'grpc-encoding': 'gzip',
    })
    let status = 'none'
    for (const event of ['response', 'trailers'] as const) {
      stream.on(event, (headers) => (status = String(headers['grpc-status'] ?? status)))
    }
    stream.on('error', () => {})
    stream.resume()
    stream.end(Buffer.concat([head, message]))
    await new Promise((resolve) => stream.once('close', resolve))
    return status
  } finally {
    session.destroy()
  }
}

await t.test('no picture takes a server with it', { skip: withoutMemoryLimits() }, async (t) => {
  const serving = await serveWithin(t)
  t.equal(await send(serving, 256), '0')
  // 143 KB and less, which are up to 147 MB of zeros, and some gigabytes between the steps.
  for (const side of [7000, 6000, 5000, 4000, 3000]) {
    t.match(await send(serving, side), /^[08]$/, `${side} pixels`)
    const { status } = await restCall(serving.httpPort, 'GET', '/v2/health/ready')
    t.equal(status, 200, 'the server lives')
  }
  t.equal(await send(serving, 7000), '8', 'as overload')
})
