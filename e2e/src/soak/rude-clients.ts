import { connect as connectHttp2 } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { resetSocket } from '@tutti/chassis/testing'
import { InferenceClient } from '@tutti/protocol/client'
import { between, type Random } from '../processes/history-requests.ts'
import { identityQuestion } from '../processes/questions.ts'
import { inferPath, JSON_LENGTH, restBody } from '../rest-infer.ts'
import type { Target } from '../serving.ts'

/** One who does what no client should, and leaves. Resolves when it has left; never rejects. */
type Rude = (target: Target, random: Random) => Promise<void>

const LARGE_BYTES = 4 * 1024 * 1024

/** By what they do. */
export const RUDE_CLIENTS: Readonly<Record<string, Rude>> = {
  'leaves in the middle of a request': leaveInRequest,
  'leaves in the middle of an answer': leaveInAnswer,
  'reads slowly': readSlowly,
  'says nothing': sayNothing,
  'opens calls without a message': openCalls,
  'speaks half of HTTP/2': speakHalf,
  'cancels calls': cancelCalls,
  'leaves a stream with answers to come': leaveStream,
}

/** All of them at the same time, each some times. @returns how many there were. */
export async function beRude(target: Target, random: Random, times: number): Promise<number> {
  const all = Array.from({ length: times }, () => Object.values(RUDE_CLIENTS)).flat()
  await Promise.all(all.map((rude) => rude(target, random)))
  return all.length
}

/** Opens a connection, on which errors are expected. */
function open(port: number): Socket {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  return socket
}

function largeRequest(): Buffer {
  const { inputs } = identityQuestion(LARGE_BYTES).request
  const { body, jsonBytes } = restBody(inputs)
  const head = [
    `POST ${inferPath('big_identity')} HTTP/1.1`,
    'host: soak',
    `content-length: ${body.byteLength}`,
    `${JSON_LENGTH}: ${jsonBytes}`,
  ]
  return Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), body])
}

async function leaveInRequest({ httpPort }: Target, random: Random): Promise<void> {
  const bytes = largeRequest()
  const socket = open(httpPort)
  socket.write(bytes.subarray(0, between(random, 1, bytes.length - 1)))
  await delay(between(random, 0, 300))
  if (random() < 0.5) resetSocket(socket)
  else socket.destroy()
}

async function leaveInAnswer({ httpPort }: Target): Promise<void> {
  const socket = open(httpPort)
  socket.write(largeRequest())
  await new Promise((resolve) => {
    socket.once('data', resolve)
    socket.once('close', resolve)
  })
  resetSocket(socket)
}

/** Takes a little of the answer now and then. */
async function readSlowly({ httpPort }: Target, random: Random): Promise<void> {
  const socket = open(httpPort)
  socket.write(largeRequest())
  socket.pause()
  for (let i = 0; i < 10; i += 1) {
    await delay(between(random, 50, 150))
    socket.read(1024)
  }
  socket.destroy()
}

async function sayNothing(target: Target, random: Random): Promise<void> {
  const ports = [target.grpcPort, target.httpPort, target.metricsPort]
  const sockets = ports.flatMap((port) => [open(port), open(port)])
  await delay(between(random, 100, 1000))
  for (const socket of sockets) resetSocket(socket)
}

const INFER = '/inference.GRPCInferenceService/ModelInfer'

async function openCalls({ grpcPort }: Target, random: Random): Promise<void> {
  const session = connectHttp2(`http://127.0.0.1:${grpcPort}`)
  session.on('error', () => {})
  for (let i = 0; i < 50; i += 1) {
    const headers = { ':method': 'POST', ':path': INFER, 'content-type': 'application/grpc' }
    const stream = session.request({ ...headers, te: 'trailers' })
    stream.on('error', () => {})
    if (i % 2 === 0) stream.write(Buffer.from([0, 0, 0, 1, 0, 1]))
  }
  await delay(between(random, 100, 1000))
  session.destroy()
}

async function speakHalf({ grpcPort }: Target, random: Random): Promise<void> {
  const socket = open(grpcPort)
  const settings = Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0])
  socket.write(Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), settings]))
  const noise = Array.from({ length: between(random, 1, 200) }, () => between(random, 0, 255))
  socket.write(Buffer.from(noise))
  await delay(between(random, 10, 200))
  resetSocket(socket)
}

async function cancelCalls({ grpcPort }: Target, random: Random): Promise<void> {
  const client = new InferenceClient({ address: `127.0.0.1:${grpcPort}` })
  const calls = Array.from({ length: 4 }, (_, i) =>
    client
      .infer(identityQuestion(LARGE_BYTES / 4, i).request, {
        signal: AbortSignal.timeout(between(random, 1, 100)),
        timeoutMs: 10_000,
      })
      .catch(() => {}),
  )
  await Promise.all(calls)
  client.close()
}

async function leaveStream({ grpcPort }: Target): Promise<void> {
  const client = new InferenceClient({ address: `127.0.0.1:${grpcPort}` })
  const stream = client.openStream({ timeoutMs: 10_000 })
  for (let i = 0; i < 5; i += 1) {
    stream.send(identityQuestion(LARGE_BYTES / 8, i).request).catch(() => {})
  }
  try {
    for await (const _ of stream.responses()) stream.cancel()
  } catch {
    // Cancelled, as meant.
  }
  client.close()
}
