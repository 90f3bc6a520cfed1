// Asks the ensemble of `helm test` over gRPC until it answers, and checks that both of its steps have added one.
// With node alone: the messages of the protocol are written by hand.
import { connect, constants } from 'node:http2'

const { ROUTER_URL, MODEL, DEADLINE_S } = process.env
const INPUT = [0, 1, -2.5]
const deadline = Date.now() + Number(DEADLINE_S) * 1000

const varint = (value) => (value < 128 ? [value] : [(value & 127) | 128, ...varint(value >>> 7)])
const field = (number, bytes) => [...varint((number << 3) | 2), ...varint(bytes.length), ...bytes]
const text = (value) => [...Buffer.from(value)]

/** ModelInferRequest: model_name, inputs {name, datatype, shape}, raw_input_contents. */
function request() {
  const tensor = [
    ...field(1, text('x')),
    ...field(2, text('FP32')),
    ...field(3, varint(INPUT.length)),
  ]
  const raw = [...Buffer.from(Float32Array.from(INPUT).buffer)]
  return [...field(1, text(MODEL)), ...field(5, tensor), ...field(7, raw)]
}

/** raw_output_contents of a ModelInferResponse. */
function output(message) {
  let at = 0
  const next = () => {
    let value = 0
    for (let shift = 0; ; shift += 7) {
      const byte = message[at++]
      value |= (byte & 127) << shift
      if (byte < 128) return value
    }
  }
  while (at < message.length) {
    const tag = next()
    const size = next()
    if (tag === ((6 << 3) | 2)) return [...new Float32Array(message.slice(at, at + size).buffer)]
    at += size
  }
  throw new Error('the answer holds no tensor')
}

/** @returns the tensor. @throws Error with what the router said. */
async function ask() {
  const session = connect(ROUTER_URL)
  try {
    return await new Promise((resolve, reject) => {
      session.on('error', reject)
      const call = session.request({
        [constants.HTTP2_HEADER_METHOD]: 'POST',
        [constants.HTTP2_HEADER_PATH]: '/inference.GRPCInferenceService/ModelInfer',
        'content-type': 'application/grpc',
        te: 'trailers',
      })
      const parts = []
      let status = {}
      call.on('response', (headers) => (status = { ...status, ...headers }))
      call.on('trailers', (trailers) => (status = { ...status, ...trailers }))
      call.on('data', (part) => parts.push(part))
      call.on('error', reject)
      call.on('end', () => {
        if (status['grpc-status'] !== '0') {
          reject(
            new Error(
              `grpc-status ${status['grpc-status']}: ${decodeURIComponent(status['grpc-message'] ?? '')}`,
            ),
          )
        } else resolve(output(Uint8Array.from(Buffer.concat(parts).subarray(5))))
      })
      const message = request()
      const head = Buffer.alloc(5)
      head.writeUInt32BE(message.length, 1)
      call.end(Buffer.concat([head, Buffer.from(message)]))
    })
  } finally {
    session.destroy()
  }
}

let last = ''
for (;;) {
  try {
    const got = await ask()
    const wanted = INPUT.map((value) => value + 2)
    const isRight = JSON.stringify(got) === JSON.stringify(wanted)
    console.log(`${MODEL} answered ${JSON.stringify(got)}, want ${JSON.stringify(wanted)}`)
    process.exit(isRight ? 0 : 1)
  } catch (error) {
    if (Date.now() > deadline) {
      console.error(`${MODEL} did not answer in ${DEADLINE_S} s: ${error.message}`)
      process.exit(1)
    }
    if (error.message !== last) console.log(`waiting: ${error.message}`)
    last = error.message
  }
  await new Promise((resolve) => setTimeout(resolve, 1000))
}
