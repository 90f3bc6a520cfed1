import { readFile } from 'node:fs/promises'
import {
  type FlagTable,
  type FlagValues,
  type ProcessEnvironment,
  printable,
  reportProblem,
} from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { InferResponseParts, ModelMetadata } from '@tutti/protocol'
import type { NamedTensor } from '@tutti/tensor'
import { type Command, FORMAT_FLAG, withFlags } from '../command.ts'
import { openGrpcClient } from './grpc-client.ts'
import { type ModelClient, parseServerUrl } from './model-client.ts'
import { readNamed } from './named-flags.ts'
import { parseShape } from './parse-shape.ts'
import { type InputSource, readInput } from './read-input.ts'
import { openRestClient } from './rest-client.ts'
import { summarizeTensor, toJsonData } from './tensor-text.ts'
import { missingOutputs, readOutputFiles, storeOutputs } from './write-output.ts'

export const INFER_FLAGS = {
  input: {
    type: 'string',
    aliases: ['i'],
    repeatable: true,
    description:
      'NAME=VALUE, a number, JSON or text; NAME=@FILE; NAME=@- for standard input. Files: .npy, .json, .png for UINT8 pictures, text or any file for BYTES, or the bytes of the tensor. Repeat the flag for more.',
  },
  shape: {
    type: 'string',
    repeatable: true,
    description:
      'NAME=1,3,224: the shape of an input, where its values leave several. Repeat the flag for more.',
  },
  output: {
    type: 'string',
    aliases: ['o'],
    repeatable: true,
    description:
      'NAME=FILE: write an output to a file, by its extension as .npy, .json, .png, or as bytes. In a stream the second response goes to FILE.2, before the extension. What cannot be written is an error, and the rest is written. Repeat the flag for more.',
  },
  url: {
    type: 'string',
    default: 'grpc://127.0.0.1:8001',
    description:
      'Address of the server: grpc://, grpcs://, http:// or https://. Streams need gRPC.',
  },
  'model-version': {
    type: 'string',
    default: '',
    description: 'Version of the model. Default: the one that the server chooses.',
  },
  'token-file': {
    type: 'string',
    description:
      'File with a bearer token for the server. Without it, TUTTI_TOKEN of the environment.',
  },
  'tls-ca': {
    type: 'string',
    description: 'File with the authorities of the server, in PEM. Default: those of Node.',
  },
  'tls-cert': { type: 'string', description: "File with the client's certificate, in PEM." },
  'tls-key': { type: 'string', description: "File with the client's key, in PEM." },
  'timeout-secs': {
    type: 'int',
    min: 1,
    max: 86_400,
    unit: 's',
    description: 'Time for each call of the server. Default: no limit.',
  },
  format: FORMAT_FLAG,
} as const satisfies FlagTable

type Flags = FlagValues<typeof INFER_FLAGS>

export const inferCommand: Command = {
  name: 'infer',
  description: 'Sends a request to a model of a running server, and shows or stores the answer.',
  run: withFlags(
    { usage: 'tutti infer MODEL --input NAME=VALUE [FLAGS]', flags: INFER_FLAGS },
    async ({ flags, positionals }, environment) => {
      const [model, ...more] = positionals
      if (model === undefined || more.length > 0) {
        throw new ServeError('FLAG_INVALID', `got ${positionals.length} model names, want one`)
      }
      const url = parseServerUrl(flags.url)
      const open = url.protocol.startsWith('grpc') ? openGrpcClient : openRestClient
      const client = open({
        url,
        tls: await readTls(flags),
        headers: await readToken(flags, environment),
        ...(flags['timeout-secs'] !== undefined && { timeoutMs: flags['timeout-secs'] * 1000 }),
      })
      try {
        return await inferOnce(client, { model, flags, environment })
      } finally {
        client.close()
      }
    },
  ),
}

/** @returns the exit code. */
async function inferOnce(
  client: ModelClient,
  o: { readonly model: string; readonly flags: Flags; readonly environment: ProcessEnvironment },
): Promise<number> {
  const { flags, environment } = o
  const version = flags['model-version']
  const metadata = await client.metadata(o.model, version)
  const inputs = await readInputs(metadata, flags, environment)
  const files = readOutputFiles(flags.output, metadata.outputs)
  const request = { modelName: o.model, modelVersion: version, inputs }
  const startedAt = performance.now()
  let index = 0
  let code = 0
  const report = (problem: Error): void => {
    code = 1
    reportProblem('tutti infer', problem, environment)
  }
  const came = new Set<string>()
  for await (const response of client.infer(request, metadata)) {
    index += 1
    const { stored, problems } = await storeOutputs(response, files, index)
    environment.out(
      flags.format === 'json'
        ? renderJson(response, stored)
        : renderText(response, stored, performance.now() - startedAt),
    )
    problems.forEach(report)
    for (const { name } of response.outputs) came.add(name)
  }
  if (index === 0 && flags.format === 'text') environment.out('no responses\n')
  missingOutputs(files, came).forEach(report)
  return code
}

async function readInputs(
  metadata: ModelMetadata,
  flags: Flags,
  environment: ProcessEnvironment,
): Promise<readonly NamedTensor[]> {
  const shapes = readNamed('shape', flags.shape, metadata.inputs)
  const given = readNamed('input', flags.input, metadata.inputs)
  for (const tensor of shapes.keys()) {
    if (given.has(tensor)) continue
    const problem = `'${tensor.name}' has no value, want --input ${tensor.name}=VALUE too`
    throw new ServeError('FLAG_INVALID', `--shape: ${problem}`, { details: { field: 'shape' } })
  }
  if ([...given.values()].filter((text) => text === '@-').length > 1) {
    throw new ServeError('FLAG_INVALID', '--input: got @- twice, and there is one standard input')
  }
  return await Promise.all(
    [...given].map(async ([tensor, text]) => {
      const shape = shapes.get(tensor)
      const declared =
        shape === undefined
          ? tensor
          : { ...tensor, shape: parseShape(tensor.name, shape, tensor.shape) }
      return readInput(declared, await openSource(text, environment))
    }),
  )
}

async function openSource(text: string, { input }: ProcessEnvironment): Promise<InputSource> {
  if (!text.startsWith('@')) return { kind: 'literal', text }
  const name = text.slice(1)
  if (name !== '-') return { kind: 'file', name, bytes: await readGiven('input', name) }
  const parts: Buffer[] = []
  for await (const part of input ?? []) parts.push(Buffer.from(part))
  return { kind: 'file', name, bytes: Buffer.concat(parts) }
}

async function readGiven(flag: string, file: string): Promise<Buffer> {
  try {
    return await readFile(file)
  } catch (cause) {
    const problem = cause instanceof Error ? cause.message : String(cause)
    throw new ServeError('FLAG_INVALID', `--${flag} ${file}: it cannot be read: ${problem}`, {
      details: { field: flag },
      cause,
    })
  }
}

async function readTls(flags: Flags) {
  const read = async (flag: 'tls-ca' | 'tls-cert' | 'tls-key') => {
    const file = flags[flag]
    return file === undefined ? undefined : (await readGiven(flag, file)).toString('utf8')
  }
  const [ca, cert, key] = await Promise.all([read('tls-ca'), read('tls-cert'), read('tls-key')])
  if ((cert === undefined) !== (key === undefined)) {
    throw new ServeError('FLAG_INVALID', '--tls-cert and --tls-key: got one, want both or none')
  }
  return {
    ...(ca !== undefined && { ca }),
    ...(cert !== undefined && { cert }),
    ...(key !== undefined && { key }),
  }
}

async function readToken(flags: Flags, { env }: ProcessEnvironment) {
  const file = flags['token-file']
  const token =
    file === undefined ? env['TUTTI_TOKEN'] : (await readGiven('token-file', file)).toString('utf8')
  const trimmed = token?.trim() ?? ''
  return trimmed === '' ? {} : { authorization: `Bearer ${trimmed}` }
}

function renderText(
  { modelName, modelVersion, outputs }: InferResponseParts,
  stored: ReadonlyMap<string, string>,
  durationMs: number,
): string {
  const names = outputs.map(({ name }) => printable(name))
  const width = Math.max(0, ...names.map((name) => name.length))
  const lines = outputs.map((tensor, i) => {
    const file = stored.get(tensor.name)
    const where = file === undefined ? '' : `  -> ${printable(file)}`
    return `  ${names[i]?.padEnd(width)}  ${summarizeTensor(tensor)}${where}\n`
  })
  const model = printable(`${modelName}, version ${modelVersion}`)
  return `${model}: ${durationMs.toFixed(1)} ms\n${lines.join('')}`
}

/** One line for a response. */
function renderJson(
  { modelName, modelVersion, id, outputs }: InferResponseParts,
  stored: ReadonlyMap<string, string>,
): string {
  const shown = outputs.map((tensor) => {
    const { name, datatype, shape } = tensor
    const file = stored.get(name)
    return {
      name,
      datatype,
      shape,
      ...(file === undefined ? { data: toJsonData(tensor) } : { file }),
    }
  })
  const response = { model: modelName, version: modelVersion, id, outputs: shown }
  return `${printable(JSON.stringify(response))}\n`
}
