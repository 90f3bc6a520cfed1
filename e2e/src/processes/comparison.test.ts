// needs: nats
import type { OutgoingRequest } from '@tutti/protocol'
import type { InferenceClient } from '@tutti/protocol/client'
import t from 'tap'
import { openClient } from '../grpc-client.ts'
import { serve, type Target } from '../serving.ts'
import { fp32 } from '../tensors.ts'
import { errorFields } from './asking.ts'
import { SKIP, startHarness } from './harness.ts'
import { identityQuestion, slowQuestion, versionedQuestion } from './questions.ts'
import { untilReady } from './seen.ts'

t.setTimeout(300_000)

const ROW = Float32Array.from({ length: 16 }, (_, i) => i)
const row = (name: string, items = 1) =>
  fp32(
    name,
    Float32Array.from({ length: 16 * items }, (_, i) => i),
    [items, 16],
  )
const vector = (name: string, ...values: number[]) =>
  fp32(name, Float32Array.from(values), [values.length])
const wanted = (...names: string[]) => names.map((name) => ({ name }))

/** Plain models, ensembles, nested ones, subsets of outputs and every way to be refused. */
const REQUESTS: Readonly<Record<string, OutgoingRequest>> = {
  'a plain model': { modelName: 'add_sub', inputs: [row('INPUT0'), row('INPUT1')] },
  'one output of two': {
    modelName: 'add_sub',
    inputs: [row('INPUT0'), row('INPUT1')],
    outputs: wanted('OUTPUT1'),
  },
  'a completed config': { modelName: 'add_one', inputs: [fp32('x', ROW.slice(0, 3), [3])] },
  'a request id': { modelName: 'identity_fp32', id: 'me', inputs: [row('x')] },
  'a scalar by reshape': {
    modelName: 'scalar_reshape',
    inputs: [fp32('X', ROW.slice(2, 3), [1, 1])],
  },
  'an empty tensor': {
    modelName: 'identity_fp32_nonbatch',
    inputs: [fp32('x', new Float32Array(), [0])],
  },
  texts: {
    modelName: 'identity_string',
    inputs: [
      { name: 'x', datatype: 'BYTES', shape: [1, 2], data: Buffer.from('\x03\0\0\0abc\0\0\0\0') },
    ],
  },
  'a chain': { modelName: 'ens_chain', id: 'c', inputs: [row('X')] },
  'a batch through a chain': { modelName: 'ens_chain', inputs: [row('X', 5)] },
  'a branch and a join': { modelName: 'ens_branch_join', inputs: [row('X', 2)] },
  'an ensemble in an ensemble': { modelName: 'ens_nested', inputs: [row('X', 8)] },
  'all outputs': { modelName: 'ens_subset', inputs: [row('X')] },
  'the middle output': {
    modelName: 'ens_subset',
    inputs: [row('X')],
    outputs: wanted('PLUS_ONE'),
  },
  'outputs in another order': {
    modelName: 'ens_subset',
    inputs: [row('X')],
    outputs: wanted('COPY', 'PLUS_TWO'),
  },
  'an optional input left out': { modelName: 'ens_optional', inputs: [vector('x', 1, 2)] },
  'an optional input': {
    modelName: 'ens_optional',
    inputs: [vector('x', 1, 2), vector('bias', 7)],
  },
  'a batch that becomes one item': { modelName: 'ens_batch_to_nonbatch', inputs: [row('X', 3)] },
  'two versions': versionedQuestion(64).request,
  'a version by name': { modelName: 'versioned', modelVersion: '1', inputs: [vector('x', 1)] },
  '2 MB through one step': identityQuestion(2 ** 21).request,
  '700 KB through two steps': versionedQuestion(700_000).request,
  'a slow model': slowQuestion(3, 'ens_slow').request,
  classification: {
    modelName: 'labels',
    inputs: [fp32('SCORES', Float32Array.of(1, 3, 2), [1, 3])],
    outputs: [
      { name: 'CLASSES', parameters: new Map([['classification', { kind: 'int64', value: 2n }]]) },
    ],
  },
  'an unknown model': { modelName: 'missing', inputs: [row('X')] },
  'an unknown version': { modelName: 'versioned', modelVersion: '2', inputs: [vector('x', 1)] },
  'no version at all': { modelName: 'versioned', modelVersion: 'one', inputs: [vector('x', 1)] },
  'a wrong shape': { modelName: 'ens_chain', inputs: [fp32('X', ROW.slice(1), [1, 15])] },
  'a wrong shape for a model': { modelName: 'add_sub', inputs: [row('INPUT0'), row('INPUT1', 2)] },
  'a wrong datatype': {
    modelName: 'ens_chain',
    inputs: [{ name: 'X', datatype: 'FP64', shape: [1, 16], data: new Uint8Array(128) }],
  },
  'too few bytes': {
    modelName: 'ens_chain',
    inputs: [{ name: 'X', datatype: 'FP32', shape: [1, 16], data: fp32('X', ROW.slice(1)).data }],
  },
  'too few bytes for a model': {
    modelName: 'add_one_batch',
    inputs: [{ name: 'X', datatype: 'FP32', shape: [1, 16], data: fp32('X', ROW.slice(1)).data }],
  },
  'bytes of no whole element': {
    modelName: 'add_one_batch',
    inputs: [{ name: 'X', datatype: 'FP32', shape: [1, 16], data: new Uint8Array(7) }],
  },
  'a text that is cut short': {
    modelName: 'identity_string',
    inputs: [{ name: 'x', datatype: 'BYTES', shape: [1, 1], data: Buffer.from('\x09\0\0\0abc') }],
  },
  'an extent of -1': {
    modelName: 'identity_fp32_nonbatch',
    inputs: [{ name: 'x', datatype: 'FP32', shape: [-1], data: new Uint8Array(8) }],
  },
  'a wrong datatype for a model': {
    modelName: 'add_one_batch',
    inputs: [{ name: 'X', datatype: 'INT64', shape: [1, 16], data: new Uint8Array(9) }],
  },
  'an unexpected input': { modelName: 'ens_chain', inputs: [row('Z')] },
  'an input too many': { modelName: 'add_one_batch', inputs: [row('X'), row('Z')] },
  'a missing input': { modelName: 'add_sub', inputs: [row('INPUT0')] },
  'an unknown output': {
    modelName: 'ens_chain',
    inputs: [row('X')],
    outputs: wanted('NOPE'),
  },
  'too large a batch': { modelName: 'ens_chain', inputs: [row('X', 9)] },
  'a model that fails': { modelName: 'fail_at_run', inputs: [vector('x', 7, 7, 7)] },
  'a step that fails': { modelName: 'ens_fail', inputs: [vector('x', 7, 7, 7)] },
  'a step that does not fail': { modelName: 'ens_fail', inputs: [vector('x', 3, 7, 7)] },
}

const CHAIN_INPUT = { name: 'X', datatype: 'FP32', shape: [1, 16], data: [...ROW] }

/** Statistics come last, so that they count all that was asked before. */
const REST: readonly RestCase[] = [
  {
    title: 'tensors as JSON',
    method: 'POST',
    path: 'models/ens_chain/infer',
    body: { inputs: [CHAIN_INPUT] },
  },
  {
    title: 'an error as JSON',
    method: 'POST',
    path: 'models/ens_chain/infer',
    body: { inputs: [] },
  },
  { title: 'an unknown model', method: 'GET', path: 'models/missing' },
  { title: 'the index', method: 'POST', path: 'repository/index', body: {} },
  { title: 'the server', method: 'GET', path: '' },
  ...['ens_chain', 'ens_nested', 'versioned', 'add_one', 'labels', 'slow'].flatMap(
    (model): RestCase[] => [
      { title: `metadata of ${model}`, method: 'GET', path: `models/${model}` },
      { title: `config of ${model}`, method: 'GET', path: `models/${model}/config` },
      { title: `readiness of ${model}`, method: 'GET', path: `models/${model}/ready` },
    ],
  ),
  ...[
    'add_one_batch',
    'ens_chain',
    'ens_nested',
    'ens_fail',
    'fail_at_run',
    'versioned',
    'ens_optional',
  ].map(
    (model): RestCase => ({
      title: `statistics of ${model}`,
      method: 'GET',
      path: `models/${model}/stats`,
    }),
  ),
]

/** An HTTP call as a client makes it. */
interface RestCase {
  readonly title: string
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly body?: unknown
}

/** Makes an HTTP call, and returns what a server answers: all that a client could tell apart, except times. */
async function restAnswer(target: Target, o: RestCase): Promise<unknown> {
  const answer = await fetch(`http://127.0.0.1:${target.httpPort}/v2/${o.path}`, {
    method: o.method,
    ...(o.body !== undefined && { body: JSON.stringify(o.body) }),
  })
  const text = await answer.text()
  return {
    status: answer.status,
    type: answer.headers.get('content-type'),
    reason: answer.headers.get('tutti-error-reason'),
    body: o.path.endsWith('/stats') ? withoutTimes(text) : text,
  }
}

/** Durations and points in time differ from run to run; everything else of the statistics does not. */
function withoutTimes(text: string): unknown {
  return JSON.parse(text, (key, value: unknown) =>
    key === 'ns' || key === 'last_inference' ? 'a time' : value,
  )
}

/** Makes a gRPC request, and returns what a server answers: tensors to the byte, or the error. */
async function grpcAnswer(client: InferenceClient, request: OutgoingRequest): Promise<unknown> {
  try {
    const { modelName, modelVersion, id, parameters, outputs } = await client.infer(request)
    return {
      modelName,
      modelVersion,
      id,
      parameters: [...parameters],
      outputs: outputs.map(({ data, ...header }) => ({
        ...header,
        data: Buffer.from(data).toString('hex'),
      })),
    }
  } catch (error) {
    const { code, reason, message } = errorFields(error)
    return { code, reason, message }
  }
}

await t.test(
  'one process, and a router over steps, give the same answer to everything',
  { skip: SKIP },
  async (t) => {
    const harness = await startHarness(t)
    const fixtures = 'model_repository/.variants/fixtures/basic'
    const [serving, router] = await Promise.all([
      serve(t, { repositories: [fixtures] }),
      harness.router(),
      harness.step(),
    ])
    await untilReady([router], ['ens_nested', 'ens_subset', 'labels', 'ens_versioned'])
    const [one, many] = [openClient(t, serving), openClient(t, router)]
    for (const [title, request] of Object.entries(REQUESTS)) {
      t.same(await grpcAnswer(many, request), await grpcAnswer(one, request), title)
    }
    for (const rest of REST) {
      t.same(await restAnswer(router, rest), await restAnswer(serving, rest), rest.title)
    }
  },
)
