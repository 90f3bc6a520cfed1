// The surfaces that are fuzzed: each takes bytes, and either understands them or refuses them with an error of its kind. What it has
// understood must hold: written down and read again it is the same, its tensors have the bytes that their shapes say.
import assert from 'node:assert/strict'
import { rmSync, writeFileSync } from 'node:fs'
import { lstat, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { threadId } from 'node:worker_threads'
import { decodePicture } from '../../services/backends/dist/builtin/code/pictures/decode-picture.js'
import { loadLibvips } from '../../services/backends/dist/builtin/code/pictures/libvips.js'
import { inspectOnnx } from '../../services/backends/dist/onnx/inspect.js'
import { toPorts, toSignature } from '../../services/backends/dist/onnx/model-ports.js'
import { parseManifests } from '../../services/cli/dist/manifests/parse-manifests.js'
import { MessageReader } from '../../services/grpc/dist/call/message-reader.js'
import { HttpFault } from '../../services/http/dist/http1/http-fault.js'
import { ConnectionError } from '../../services/http/dist/http2/error-code.js'
import { encodeFields, Http2Connection } from '../../services/http/dist/index.js'
import { KubeError } from '../../services/kube/dist/index.js'
import { parseEvent } from '../../services/kube/dist/watch/read-events.js'
import {
  checkInferRequest,
  emptyModelConfig,
  modelMetadata,
  parseModelConfig,
  printModelConfig,
} from '../../services/model-config/dist/index.js'
import {
  decodeChunk,
  decodeGenerateRequest,
  decodeHeartbeat,
  decodeInferRequest,
  decodeMessage,
  decodeRestRequest,
  encodeChunk,
  encodeHeartbeat,
  encodeMessage,
} from '../../services/protocol/dist/index.js'
import { decodePlace } from '../../services/protocol/dist/rest/shared-place.js'
import { extractArchive } from '../../services/repository/dist/fetch/extract-archive.js'
import { toHubFiles } from '../../services/repository/dist/fetch/hub-api.js'
import { toDescriptors } from '../../services/repository/dist/fetch/oci-registry.js'
import { s3Api } from '../../services/repository/dist/fetch/s3-api.js'
import { parseMembers } from '../../services/repository/dist/json-members.js'
import { asApi } from '../../services/repository/dist/remote/as-api.js'
import { gsApi } from '../../services/repository/dist/remote/gs-api.js'
import { parseCudaRegion, parseRegion } from '../../services/rest/dist/routes/region-routes.js'
import { parseLogBody, parseTraceBody } from '../../services/rest/dist/routes/settings-routes.js'
import { SharedRegions } from '../../services/shared-memory/dist/shared-regions.js'
import { TraceSettings } from '../../services/telemetry/dist/trace/trace-settings.js'
import { DATATYPES, elementCount } from '../../services/tensor/dist/index.js'
import { WireParser } from '../../services/transport/dist/nats/wire-parser.js'
import { READ_BYTES } from '../../services/transport/dist/sockets/placed-reader.js'
import { runHttp1 } from './http1-surface.mjs'

/**
 * @typedef {object} Surface
 * @property {readonly ('bytes' | 'text' | 'json' | 'protobuf' | 'tar' | 'grpc' | 'http1' | 'http2')[]} formats - changes that fit it.
 * @property {(input: Buffer) => unknown} run - throws, or rejects, with `refusal` for an input that it refuses, and with anything else
 *   if something is wrong with us.
 * @property {readonly Buffer[]} [examples] - default the corpus of its name.
 * @property {new (...args: never[]) => Error} [refusal] - default ServeError.
 */

/** @type {Readonly<Record<string, Surface>>} */
export const SURFACES = {
  'config-text': { formats: ['text'], run: runConfigText },
  onnx: {
    formats: ['protobuf'],
    run: async (input) => toSignature(toPorts(await inspectOnnx(input))),
  },
  picture: { formats: ['bytes'], run: runPicture },
  'rest-json': { formats: ['json', 'text'], run: (body) => checkTensors(decodeRest(body)) },
  'rest-generate': { formats: ['json', 'text'], run: runGenerate },
  'rest-settings': { formats: ['json', 'text'], run: runSettings },
  'rest-binary': { formats: ['json', 'bytes'], run: runRestBinary },
  'shared-memory': {
    formats: ['json', 'text'],
    run: (input) =>
      input.includes('"raw_handle"') ? runCudaRegion(input) : runSystemRegion(input),
  },
  grpc: { formats: ['grpc', 'protobuf'], run: runGrpc },
  http1: { formats: ['http1', 'text'], run: runHttp1, refusal: HttpFault },
  http2: { formats: ['http2'], run: runHttp2, refusal: ConnectionError },
  message: { formats: ['bytes'], run: (input) => runCodec(input, decodeMessage, encodeMessage) },
  heartbeat: {
    formats: ['json'],
    run: (input) => runCodec(input, decodeHeartbeat, encodeHeartbeat),
  },
  chunk: {
    formats: ['bytes'],
    run: (input) =>
      runCodec(input, decodeChunk, ({ bytes, ...header }) => encodeChunk(header, bytes)),
  },
  broker: { formats: ['text', 'bytes'], run: runBroker },
  manifest: {
    formats: ['text', 'json'],
    run: (input) => parseManifests([{ name: 'm.yaml', text: input.toString() }]),
  },
  tar: { formats: ['tar'], run: runTar },
  's3-listing': { formats: ['text'], run: runListing(s3Api('bucket', { credentials: {} })) },
  'gs-listing': { formats: ['json', 'text'], run: runListing(gsApi({ bucket: 'bucket' })) },
  'as-listing': { formats: ['text'], run: runListing(asApi('bucket', { account: 'name' })) },
  'hub-files': { formats: ['json', 'text'], run: runHubFiles },
  'oci-manifest': { formats: ['json', 'text'], run: runOciManifest },
  'watch-line': {
    formats: ['json', 'text'],
    run: (input) => parseEvent(input.toString(), 'GET /'),
    refusal: KubeError,
  },
}

const PICTURE = { color: 'RGB', applyOrientation: true, maxPixels: 2 ** 18 }

/** A picture that is decoded has the pixels that it says, and no more than are allowed. */
async function runPicture(input) {
  const { width, height, channels, data } = await decodePicture(await loadLibvips(), input, PICTURE)
  assert.equal(data.byteLength, width * height * channels)
  assert.ok(width * height <= PICTURE.maxPixels)
}

function runConfigText(input) {
  const config = parseModelConfig(input.toString(), '/models/m/config.pbtxt')
  assert.deepEqual(parseModelConfig(printModelConfig(config), 'printed'), config)
}

/** Inputs called as their datatype in small letters, of any length each. */
const INPUTS = Object.entries(DATATYPES).map(([datatype, { config }]) => {
  return { name: datatype.toLowerCase(), data_type: config, dims: [-1], optional: true }
})
const CONFIG = {
  ...emptyModelConfig('m'),
  backend: 'python',
  input: INPUTS,
  output: [{ name: 'y', data_type: 'TYPE_FP32', dims: [-1] }],
}

function decodeRest(body, headerLength) {
  return decodeRestRequest({ body, headerLength, modelName: 'm', config: CONFIG })
}

/** Checks that what the decoder gives to inputs fits their shapes. */
function runGenerate(body) {
  const { inputs, context } = decodeGenerateRequest(body, modelMetadata(CONFIG, []).inputs)
  checkTensors({ id: context.id, inputs, outputs: [] })
}

/** Checks that what is set is written with its own type, and can be set again. */
function runSettings(body) {
  const trace = new TraceSettings({ values: TRACE_VALUES, file: 'x' })
  trace.change('m', parseTraceBody(body))
  const { level, ...numbers } = trace.valuesOf('m')
  assert.ok(level.every((one) => one === 'TIMESTAMPS' || one === 'TENSORS'))
  assert.ok(Object.values(numbers).every((value) => Number.isSafeInteger(value) && value >= -1))
  for (const [name, value] of Object.entries(parseLogBody(body))) {
    const want = { verboseLevel: 'number', format: 'string' }[name] ?? 'boolean'
    assert.equal(typeof value, want, name)
  }
}

const TRACE_VALUES = { level: [], rate: 1000, count: -1, logFrequency: 0 }

/** An object of shared memory with bytes that tell where they are, made on the first demand. */
let shared
function sharedObject() {
  if (shared !== undefined) return shared
  const name = `tutti_fuzz_${process.pid}_${threadId}`
  shared = { name, bytes: Buffer.from(Array.from({ length: 4096 }, (_, index) => index % 251)) }
  writeFileSync(`/dev/shm/${name}`, shared.bytes)
  process.on('exit', () => rmSync(`/dev/shm/${name}`, { force: true }))
  return shared
}

/** The object as the memory of a GPU. */
async function openShared() {
  const { bytes } = sharedObject()
  const at = (begin, { byteLength }) => {
    assert.ok(begin + byteLength <= bytes.byteLength)
    return bytes.subarray(begin, begin + byteLength)
  }
  return {
    byteSize: bytes.byteLength,
    read: (begin, into) => into.set(at(begin, into)),
    write: (begin, from) => at(begin, from).set(from),
    close: () => {},
  }
}

/** As `runSystemRegion`, of a GPU. */
async function runCudaRegion(input) {
  const regions = new SharedRegions(openShared)
  const request = parseCudaRegion('r', input)
  await regions.registerCuda(request)
  const place = decodePlace(JSON.parse(input.toString()).parameters)
  if (place === undefined) return
  const region = regions.find(place.region)
  const read = region.read(place)
  assert.ok(place.offset + place.byteSize <= request.byteSize)
  const { bytes } = sharedObject()
  assert.deepEqual(read, bytes.subarray(place.offset, place.offset + place.byteSize))
  region.write(place, read)
}

/** A client reads and writes within its region, whatever it says of that; the key `SHARED` is that of the object. */
function runSystemRegion(input) {
  const { name, bytes } = sharedObject()
  const request = parseRegion('r', input)
  const regions = new SharedRegions()
  const isOurs = request.key.replace(/^[/]+/, '') === 'SHARED'
  try {
    regions.register(isOurs ? { ...request, key: name } : request)
    const place = decodePlace(JSON.parse(input.toString()).parameters)
    if (place === undefined || !isOurs) return
    const region = regions.find(place.region)
    const read = region.read(place)
    assert.ok(place.offset + place.byteSize <= request.byteSize)
    const begin = request.offset + place.offset
    assert.deepEqual(read, bytes.subarray(begin, begin + place.byteSize))
    // A write to another place would show in a later read.
    region.write(place, read)
  } finally {
    regions.close()
  }
}

/** The first line is the header with the length of the JSON. */
function runRestBinary(input) {
  const end = input.indexOf('\n')
  const length = input.toString('latin1', 0, Math.max(end, 0))
  const body = input.subarray(end + 1)
  const jsonBytes = length === 'json' ? body.lastIndexOf('}') + 1 : length
  checkTensors(decodeRest(body, String(jsonBytes)))
}

/** Checks that a request that is accepted has the bytes that its shapes say. */
function checkTensors({ id, inputs: sent, outputs }) {
  const requestedOutputs = outputs.map(({ name }) => name)
  const { inputs } = checkInferRequest(CONFIG, { context: { id }, inputs: sent, requestedOutputs })
  for (const { name, datatype, shape, data } of inputs) {
    const { itemSize } = DATATYPES[datatype]
    // Strings have any number of bytes.
    if (!itemSize) continue
    assert.equal(
      data.byteLength,
      elementCount(shape) * itemSize,
      `bytes of ${JSON.stringify(name)}`,
    )
  }
}

const MAX_MESSAGE_BYTES = 64 * 1024

/** However the bytes come in pieces, the messages are the same. */
function runGrpc(input) {
  const whole = readMessages([input])
  const cut = input.length === 0 ? 0 : input[input.length - 1] % (input.length + 1)
  assert.deepEqual(readMessages([input.subarray(0, cut), input.subarray(cut)]), whole)
  for (const { message } of whole.messages) decodeInferRequest(message)
  if (whole.refusal instanceof Error) throw whole.refusal
}

function readMessages(pieces) {
  const reader = new MessageReader(MAX_MESSAGE_BYTES)
  const messages = []
  try {
    for (const piece of pieces) {
      const read = Buffer.from(piece)
      reader.add(read)
      for (let it = reader.next(); it !== undefined; it = reader.next()) messages.push(it)
      reader.keep()
      read.fill(0xaa)
    }
    return { messages }
  } catch (refusal) {
    return { messages, refusal }
  }
}

/** However the bytes of a broker come in pieces, they mean the same, and no more is read than it may send. */
function runBroker(input) {
  const whole = readBroker([input])
  const cut = input.length === 0 ? 0 : input[input.length - 1] % (input.length + 1)
  assert.deepEqual(readBroker([input.subarray(0, cut), input.subarray(cut)]), whole)
  if (whole.refusal instanceof Error) throw whole.refusal
}

function readBroker(pieces) {
  const heard = []
  const place = (head, { size, subject }) => {
    assert.ok(size <= MAX_MESSAGE_BYTES && head.byteLength <= size)
    const into = new Uint8Array(size - (size % 7 < head.byteLength ? size % 7 : 0))
    return { into, arrived: () => heard.push([subject, into]) }
  }
  const listener = {
    info: (json) => heard.push(['info', json]),
    ping: () => heard.push('ping'),
    pong: () => heard.push('pong'),
    refused: (text) => heard.push(['refused', text]),
    placeOf: (sid) => (sid % 2 === 0 ? () => undefined : place),
  }
  const parser = new WireParser(listener, READ_BYTES)
  parser.maxPayload = MAX_MESSAGE_BYTES
  try {
    for (const piece of pieces) parser.reader.take(piece)
    return { heard }
  } catch (refusal) {
    return { heard, refusal }
  }
}

const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0', 'latin1')
const HTTP2_BOUNDS = {
  windowBytes: 4096,
  maxConcurrentStreams: 4,
  maxHeaderListBytes: 1024,
  resetBurst: 8,
  resetsPerSecond: 1,
}
const ANSWER = encodeFields([[':status', '200']])

/**
 * Checks that what a client sends behind its first settings means the same however it is cut, that what it gets are frames, and that
 * each stream ends once.
 */
async function runHttp2(input) {
  const cut = input.length === 0 ? 0 : input[input.length - 1] % (input.length + 1)
  const whole = await serveHttp2([input])
  const parts = await serveHttp2([input.subarray(0, cut), input.subarray(cut)])
  assert.deepEqual(parts, whole)
  if (whole.code > 0) throw new ConnectionError(whole.code, 'refused')
}

/** @returns what the streams of a connection brought, and with which error it ended if it did. */
async function serveHttp2(pieces) {
  const streams = []
  const sent = []
  let code = 0
  const connection = new Http2Connection({
    ...HTTP2_BOUNDS,
    now: () => 0,
    handler: { stream: (stream) => streams.push(serveStream(stream)) },
    sink: {
      write: (written, done) => {
        sent.push(...written)
        setImmediate(done)
      },
      end: () => {},
      endSoon: () => {},
      destroy: () => {},
    },
  })
  for (const piece of [PREFACE, ...pieces]) {
    // Nothing of it may be looked at after `receive`: the next read of a socket takes its place.
    const read = Buffer.from(piece)
    connection.receive(read)
    read.fill(0xaa)
  }
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve))
  connection.close()
  for (let bytes = Buffer.concat(sent); bytes.length > 0; ) {
    const end = 9 + bytes.readUIntBE(0, 3)
    assert.ok(end <= 9 + 2 ** 14 && end <= bytes.length && bytes[3] <= 9, 'a frame')
    if (bytes[3] === 7) code = bytes.readUInt32BE(13)
    bytes = bytes.subarray(end)
  }
  for (const seen of streams) {
    assert.equal(seen.closed, 1)
    // Bytes that are too many for a length that was said show sooner or later.
    if (seen.ended === 0) seen.body = ''
  }
  return { code, streams }
}

function serveStream(stream) {
  const seen = { headers: { ...stream.headers }, body: '', ended: 0, closed: 0 }
  stream.handler = {
    data: (piece) => {
      assert.equal(seen.closed + seen.ended, 0)
      seen.body += piece.toString('latin1')
      if (seen.body.length > 100) stream.pause()
    },
    ended: () => {
      assert.equal(seen.closed, 0)
      seen.ended += 1
      stream.respond(ANSWER)
      stream.write(Buffer.alloc(3000))
      stream.end(ANSWER)
    },
    closed: () => (seen.closed += 1),
  }
  return seen
}

function runCodec(input, decode, encode) {
  const decoded = decode(input)
  const written = encode(decoded)
  assert.deepEqual(decode(Buffer.isBuffer(written) ? written : Buffer.from(written)), decoded)
}

const ARCHIVE_BOUNDS = { maxBytes: 1_000_000, maxFiles: 50, attempts: 1, stallMs: 1000 }

/** Whatever the archive is, nothing beside its own folder is touched, and no link leads out of that. */
async function runTar(input) {
  const folder = await mkdtemp(join(tmpdir(), 'tutti-fuzz-'))
  try {
    await writeFile(join(folder, 'outside'), 'untouched')
    await writeFile(join(folder, 'archive'), input)
    const { signal } = new AbortController()
    const root = await extractArchive(join(folder, 'archive'), join(folder, 'tree'), {
      bounds: ARCHIVE_BOUNDS,
      signal,
    })
    assert.ok(root.startsWith(join(folder, 'tree')), root)
    for (const entry of await readdir(root, { recursive: true })) {
      const stats = await lstat(join(root, entry))
      assert.ok(stats.isFile() || stats.isDirectory() || stats.isSymbolicLink(), entry)
      assert.equal(
        stats.mode & 0o7022,
        stats.isSymbolicLink() ? stats.mode & 0o7022 : 0,
        `mode of ${entry}`,
      )
    }
  } finally {
    assert.equal(await readFile(join(folder, 'outside'), 'utf8'), 'untouched')
    const beside = (await readdir(folder)).filter(
      (name) => !['archive', 'outside', 'tree'].includes(name),
    )
    assert.deepEqual(beside, [])
    await rm(folder, { recursive: true, force: true })
  }
}

/** Reads a text as a page of a Hub: every file has a size, and a digest that can be compared. */
function runHubFiles(input) {
  for (const { path, sizeBytes, digest } of toHubFiles(input.toString()) ?? []) {
    assert.equal(typeof path, 'string')
    assert.ok(Number.isSafeInteger(sizeBytes) && sizeBytes >= 0, `size ${sizeBytes}`)
    assert.match(digest.hex, digest.kind === 'git' ? /^[0-9a-f]{40}$/ : /^[0-9a-f]{64}$/)
  }
}

/** Reads a text as a manifest of a registry, or an index: no digest is a path. */
function runOciManifest(input) {
  const { layers, manifests } = parseMembers(input.toString()) ?? {}
  for (const { digest, sizeBytes, platform } of [layers, manifests].flatMap(toDescriptors)) {
    assert.match(digest, /^sha256:[0-9a-f]{64}$/)
    assert.ok(Number.isSafeInteger(sizeBytes) && sizeBytes >= 0, `size ${sizeBytes}`)
    assert.equal(typeof platform, 'string')
  }
}

/** Reads a text as what a bucket answers: a list, and a refusal. */
function runListing(api) {
  return (input) => {
    const text = input.toString()
    assert.equal(typeof api.toRefusal(text, {}).detail, 'string')
    const { objects, folders, next } = api.toPage(text) ?? { objects: [], folders: [], next: '' }
    for (const name of [...folders, next]) assert.equal(typeof name, 'string')
    for (const { key, tag, sizeBytes } of objects) {
      assert.equal(typeof key, 'string')
      assert.equal(typeof tag, 'string')
      assert.ok(Number.isSafeInteger(sizeBytes) && sizeBytes >= 0, `size ${sizeBytes}`)
    }
  }
}
