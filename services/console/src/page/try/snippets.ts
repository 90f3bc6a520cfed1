import type { Datatype } from '@tutti/tensor'
import { inferJson } from './infer-body.ts'
import type { RequestInput } from './request-input.ts'

/** A request that is written as lines for other clients. */
export interface SnippetSource {
  readonly model: string
  /** Version of the model; '' for the one that the server chooses. */
  readonly version: string
  readonly inputs: readonly RequestInput[]
  readonly outputs: readonly string[]
  /** True if JSON cannot hold some element of the answer. */
  readonly isBinaryAnswer: boolean
  readonly isSecure: boolean
  /** Address of the HTTP API, with its port. */
  readonly host: string
  /** True if the lines must send a token. */
  readonly hasToken: boolean
}

/** Bytes of JSON that are an argument of a program: Linux takes 128 KiB in one. `printf` is in the shell. */
const MOST_ARGUMENT = 100_000

/** Finds a file name that several inputs have: the lines read all files from one folder. Undefined if there is none. */
export function sharedFile(inputs: readonly RequestInput[]): string | undefined {
  const files = inputs.flatMap(({ content }) =>
    content.kind === 'bytes' ? [content.source.file] : [],
  )
  return files.find((file, i) => files.indexOf(file) < i)
}

/** Writes the request as `curl` lines for a POSIX shell. They read the files of the form from the current folder. */
export function curlLines(o: SnippetSource): string {
  const json = inferJson(o.inputs, o.isBinaryAnswer)
  const path = o.version === '' ? '' : `/versions/${encodeURIComponent(o.version)}`
  const scheme = o.isSecure ? 'https' : 'http'
  const url = `${scheme}://${o.host}/v2/models/${encodeURIComponent(o.model)}${path}/infer`
  const call = [
    `curl ${quote(url)}`,
    ...(o.hasToken ? ['-H "authorization: Bearer $TOKEN"'] : []),
    ...(o.isBinaryAnswer ? ['--output answer.bin'] : []),
  ]
  const bytes = o.inputs.flatMap(({ content }) => (content.kind === 'bytes' ? [content] : []))
  const length = new TextEncoder().encode(json).byteLength
  const print = `printf %s ${quote(json)}`
  if (bytes.length === 0) {
    if (length <= MOST_ARGUMENT) return [...call, `-d ${quote(json)}`].join(' \\\n  ')
    return `${print} | ${[...call, '--data-binary @-'].join(' \\\n  ')}`
  }
  const parts = bytes.flatMap(({ data, source: { file, skip, isElement } }) => [
    ...(isElement ? [`printf %b ${quote(octal(data.subarray(0, 4)))}`] : []),
    skip === 0 ? `cat ${quote(`./${file}`)}` : `tail -c +${skip + 1} ${quote(`./${file}`)}`,
  ])
  const header = `-H 'Inference-Header-Content-Length: ${length}'`
  const body = [print, ...parts].map((line) => `  ${line}`).join('\n')
  return `{\n${body}\n} | ${[...call, header, '--data-binary @-'].join(' \\\n  ')}`
}

/** Writes the request as a Python program with NVIDIA's client, `tritonclient[http]`. */
export function pythonLines(o: SnippetSource): string {
  const { model, version, inputs, host, isSecure, hasToken } = o
  const infer = [
    text(model),
    'inputs',
    ...(version === '' ? [] : [`model_version=${text(version)}`]),
    ...(hasToken ? ['headers={"authorization": "Bearer " + os.environ["TOKEN"]}'] : []),
  ]
  return [
    ...(hasToken ? ['import os'] : []),
    'import numpy as np, tritonclient.http as triton',
    '',
    `client = triton.InferenceServerClient(${text(host)}${isSecure ? ', ssl=True' : ''})`,
    'inputs = []',
    ...inputs.flatMap((input) => [
      `tensor = triton.InferInput(${text(input.name)}, ${list(input.shape)}, ${text(input.datatype)})`,
      `tensor.set_data_from_numpy(${values(input)}.reshape(${list(input.shape)}))`,
      'inputs.append(tensor)',
    ]),
    `result = client.infer(${infer.join(', ')})`,
    `for name in [${o.outputs.map(text).join(', ')}]:`,
    '    print(name, result.as_numpy(name))',
  ].join('\n')
}

const NUMPY: Readonly<Record<Datatype, string>> = {
  BOOL: 'bool_',
  UINT8: 'uint8',
  UINT16: 'uint16',
  UINT32: 'uint32',
  UINT64: 'uint64',
  INT8: 'int8',
  INT16: 'int16',
  INT32: 'int32',
  INT64: 'int64',
  FP16: 'float16',
  FP32: 'float32',
  FP64: 'float64',
  BYTES: 'object_',
  // The client takes FP32 for it.
  BF16: 'uint16',
}

function values({ datatype, content }: RequestInput): string {
  const dtype = `np.${NUMPY[datatype]}`
  if (content.kind === 'json') return `np.array(${pythonList(content.text)}, ${dtype})`
  const { file, skip, isElement } = content.source
  if (isElement) return `np.array([open(${text(file)}, "rb").read()], ${dtype})`
  if (skip > 0) return `np.load(${text(file)})`
  const read = `np.fromfile(${text(file)}, ${dtype})`
  return datatype === 'BF16' ? `(${read}.astype(np.uint32) << 16).view(np.float32)` : read
}

const WORDS: Readonly<Record<string, string>> = { true: 'True', false: 'False', null: 'None' }

/** Writes JSON as Python, which differs in three words and two escapes of texts: `\/`, and those of surrogate pairs. */
function pythonList(json: string): string {
  return json.replace(/"(?:[^"\\]|\\.)*"|true|false|null/g, (one) =>
    one.startsWith('"') ? text(JSON.parse(one)) : (WORDS[one] ?? one),
  )
}

/** Writes a text as a literal of Python, which `JSON.stringify` gives too. */
function text(value: string): string {
  return JSON.stringify(value)
}

function list(shape: readonly number[]): string {
  return `[${shape.join(', ')}]`
}

function quote(value: string): string {
  return `'${value.replaceAll("'", `'\\''`)}'`
}

function octal(bytes: Uint8Array): string {
  return [...bytes].map((byte) => `\\0${byte.toString(8).padStart(3, '0')}`).join('')
}
