import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2'
import { join } from 'node:path'
import { encodeInferRequest } from '@tutti/protocol'
import { InferenceClient } from '@tutti/protocol/client'
import t, { type Test } from 'tap'
import { residentBytes } from './control-churn.ts'
import { ROOT, type Serving, serve } from './serving.ts'
import { copyModels } from './temp-repository.ts'

t.setTimeout(600_000)

const SEQUENCES = 1000
const STREAMS = 10_000
const STREAMS_PER_CONNECTION = 1000
/** Bytes that a sequence or a stream may take at most, the noise of the heap included. */
const MAX_BYTES_EACH = 64 * 1024
const STREAM_PATH = '/inference.GRPCInferenceService/ModelStreamInfer'

await t.test(`${SEQUENCES} sequences are active at a time, each with its state`, async (t) => {
  const serving = await serveSums(t)
  const client = new InferenceClient({ address: `127.0.0.1:${serving.grpcPort}` })
  t.teardown(() => client.close())
  const ids = Array.from({ length: SEQUENCES }, (_, i) => i + 1)
  const round = async (value: number, flag: Flag) => {
    const answers = ids.map(async (id) => {
      const { outputs } = await client.infer(requestOf(value, sequence(id, flag)))
      const [output] = outputs
      return output && Buffer.from(output.data).readInt32LE()
    })
    return new Set(await Promise.all(answers))
  }
  // Memory that the first requests of a server take is not the sequences'.
  t.same(await round(1, 'both'), new Set([101]))
  const before = await residentBytes(serving)
  t.same(await round(5, 'sequence_start'), new Set([105]))
  t.same(await round(6, undefined), new Set([111]))
  await told(t, serving, { before, count: SEQUENCES, what: 'sequences' })
  t.same(await round(7, 'sequence_end'), new Set([118]))
})

await t.test(`${STREAMS} idle streams are kept and answered`, async (t) => {
  const serving = await serveSums(t)
  const sessions = Array.from({ length: STREAMS / STREAMS_PER_CONNECTION }, () =>
    connect(`http://127.0.0.1:${serving.grpcPort}`),
  )
  t.teardown(() => {
    for (const session of sessions) session.destroy()
  })
  const before = await residentBytes(serving)
  const streams: ClientHttp2Stream[] = []
  for (const session of sessions) {
    const opened = Array.from({ length: STREAMS_PER_CONNECTION }, () => open(session))
    await Promise.all(opened.map((stream) => askOnce(stream, streams.push(stream))))
  }
  await told(t, serving, { before, count: STREAMS, what: 'idle streams' })
  await Promise.all(streams.slice(0, 100).map((stream, i) => askOnce(stream, 100_000 + i)))
})

/** The model that sums up its inputs, beginning at 100, with places for all. */
async function serveSums(t: Test): Promise<Serving> {
  const from = `${ROOT}model_repository/.variants/fixtures/sequences`
  const repository = await copyModels(t, ['seq_onnx'], { from })
  const config = join(repository, 'seq_onnx/config.pbtxt')
  const oldest = `oldest { max_candidate_sequences: ${SEQUENCES} }`
  await writeFile(config, (await readFile(config, 'utf8')).replace('direct { }', oldest))
  return await serve(t, { repositories: [repository] })
}

type Flag = 'sequence_start' | 'sequence_end' | 'both' | undefined

type RequestParameters = NonNullable<Parameters<typeof encodeInferRequest>[0]['parameters']>

function sequence(id: number, flag: Flag): RequestParameters {
  const has = (name: string) => ({ kind: 'bool', value: flag === name || flag === 'both' }) as const
  return new Map<string, NonNullable<ReturnType<RequestParameters['get']>>>([
    ['sequence_id', { kind: 'int64', value: BigInt(id) }],
    ['sequence_start', has('sequence_start')],
    ['sequence_end', has('sequence_end')],
  ])
}

function requestOf(value: number, parameters: RequestParameters) {
  const data = new Uint8Array(Int32Array.of(value).buffer)
  const inputs = [{ name: 'INPUT', datatype: 'INT32' as const, shape: [1, 1], data }]
  return { modelName: 'seq_onnx', parameters, inputs }
}

function open(session: ClientHttp2Session): ClientHttp2Stream {
  return session.request({
    ':method': 'POST',
    ':path': STREAM_PATH,
    'content-type': 'application/grpc',
    te: 'trailers',
  })
}

/** Sends one request on a stream, and waits until something comes back. */
async function askOnce(stream: ClientHttp2Stream, id: number): Promise<void> {
  const message = encodeInferRequest(requestOf(1, sequence(id, 'both')))
  const head = Buffer.alloc(5)
  head.writeUInt32BE(message.byteLength, 1)
  const answered = once(stream, 'data')
  stream.write(Buffer.concat([head, message]))
  await answered
}

/** Prints what the server has taken meanwhile, and holds it against the bound. */
async function told(
  t: Test,
  serving: Serving,
  o: { readonly before: number; readonly count: number; readonly what: string },
): Promise<void> {
  const more = (await residentBytes(serving)) - o.before
  const each = Math.round(more / o.count)
  t.comment(
    `${o.count} ${o.what}: ${o.before >> 20} MiB and ${more >> 20} MiB more, ${each} bytes each`,
  )
  t.ok(each < MAX_BYTES_EACH, `${each} bytes each, want less than ${MAX_BYTES_EACH}`)
}
