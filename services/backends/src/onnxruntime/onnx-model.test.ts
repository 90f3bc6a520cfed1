import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { buildOnnx, type InitializerSpec, type OnnxSpec } from '@tutti/builtins'
import type { ModelConfig } from '@tutti/model-config'
import { DATATYPES, type Datatype, encodeBytesTensor, isDatatype } from '@tutti/tensor'
import { RecordedResponses } from '@tutti/tensor/testing'
import t, { type Test } from 'tap'
import type { LoadedModel } from '../engine.ts'
import {
  ADD_CONFIG,
  addRequest,
  buildAddModel,
  fp32Declared,
  identitySpec,
  writeModelFile,
} from '../testing/add-model.ts'
import { executeOnce, fp32Tensor, fp32Values } from '../testing/execute.ts'
import { modelConfig, modelSource, stepRequest } from '../testing/model-source.ts'
import { createOnnxEngine } from './onnx-engine.ts'

async function writeModel(t: Test, bytes: Uint8Array, filename?: string): Promise<string> {
  const { directory, remove } = await writeModelFile(bytes, filename)
  t.teardown(remove)
  return directory
}

async function loadModel(
  t: Test,
  bytes: Uint8Array,
  config: ModelConfig,
  instances = 1,
): Promise<LoadedModel> {
  const directory = await writeModel(t, bytes)
  const loaded = await createOnnxEngine().load(modelSource(directory, config), { instances })
  t.teardown(() => loaded.close())
  return loaded
}

await t.test('every datatype passes through byte for byte', async (t) => {
  for (const datatype of Object.keys(DATATYPES).filter(isDatatype)) {
    const { itemSize, config } = DATATYPES[datatype]
    const texts = ['', 'plain', '\uFEFFgrüße 漢字 🙂'].map((text) => Buffer.from(text))
    const data =
      itemSize === null
        ? encodeBytesTensor(texts)
        : // 0 and 1 only for BOOL; other types take any bits.
          Uint8Array.from({ length: 3 * itemSize }, (_, i) =>
            datatype === 'BOOL' ? i % 2 : (i * 37 + 1) % 120,
          )
    const tensor = { name: 'x', type: config, dims: [-1] }
    const model = await loadModel(
      t,
      buildOnnx(identitySpec(datatype)),
      modelConfig([tensor], [{ ...tensor, name: 'y' }]),
    )
    const [response] = await executeOnce(model, [
      stepRequest([{ name: 'x', datatype, shape: [3], data }]),
    ])
    t.equal(response?.error, undefined, datatype)
    t.match(response, { index: 0, final: true, outputs: [{ name: 'y', datatype, shape: [3] }] })
    t.same([...(response?.outputs[0]?.data ?? [])], [...data], datatype)
    const [empty] = await executeOnce(model, [
      stepRequest([{ name: 'x', datatype, shape: [0], data: new Uint8Array(0) }]),
    ])
    t.match(empty?.outputs[0], { shape: [0] }, `${datatype}, no elements`)
    t.equal(empty?.outputs[0]?.data.byteLength, 0)
  }
})

await t.test('a batch of requests runs as one and is split again', async (t) => {
  const model = await loadModel(t, buildAddModel(2), ADD_CONFIG)
  const responses = await executeOnce(model, [
    addRequest(1, 0),
    addRequest(3, 10),
    addRequest(2, 50),
  ])
  t.same(fp32Values(responses[0], 'sum'), [100, 101])
  t.same(fp32Values(responses[1], 'sum'), [110, 111, 112, 113, 114, 115])
  t.same(fp32Values(responses[2], 'sum'), [150, 151, 152, 153])
  t.same(responses[1]?.outputs[0]?.shape, [3, 2])
  const [single] = await executeOnce(model, [addRequest(2, 0)])
  t.same(fp32Values(single, 'sum'), [100, 101, 102, 103])
})

const textsRequest = (...texts: string[]) => {
  const data = encodeBytesTensor(texts.map((text) => Buffer.from(text)))
  const shape = [texts.length / 2, 2]
  return stepRequest([{ name: 'x', datatype: 'BYTES', shape, data }], {
    batchSize: shape[0] ?? 0,
  })
}

await t.test('batched texts are split by element', async (t) => {
  const tensor = { name: 'x', type: 'TYPE_STRING' as const, dims: [2] }
  const model = await loadModel(
    t,
    buildOnnx(identitySpec('BYTES', ['N', 2])),
    modelConfig([tensor], [{ ...tensor, name: 'y' }], { max_batch_size: 4 }),
  )
  const requests = [
    textsRequest('a', 'bcd'),
    textsRequest('', 'e', 'f', 'ghi'),
    textsRequest('x', 'y'),
  ]
  const responses = await executeOnce(model, requests)
  responses.forEach((response, i) => {
    t.same(response.outputs[0]?.data, requests[i]?.inputs[0]?.data)
    t.same(response.outputs[0]?.shape, requests[i]?.inputs[0]?.shape)
  })
})

await t.test('requests that cannot be joined run one after the other', async (t) => {
  const dims = ['N', 'W']
  const model = await loadModel(
    t,
    buildOnnx(identitySpec('FP32', dims)),
    modelConfig([fp32Declared('x', [-1])], [fp32Declared('y', [-1])], { max_batch_size: 4 }),
  )
  const responses = await executeOnce(model, [
    stepRequest([fp32Tensor('x', [1, 2], [1, 2])], { batchSize: 1 }),
    stepRequest([fp32Tensor('x', [1, 3], [3, 4, 5])], { batchSize: 1 }),
    stepRequest([fp32Tensor('x', [1, 2], [6, 7])], { batchSize: 1 }),
    stepRequest([fp32Tensor('x', [2, 1], [8, 9])]),
  ])
  t.same(
    responses.map((response) => fp32Values(response, 'y')),
    [
      [1, 2],
      [3, 4, 5],
      [6, 7],
      [8, 9],
    ],
  )
})

const TWO_OUTPUTS: OnnxSpec = {
  inputs: [{ name: 'x', type: 'FP32', dims: ['N'] }],
  outputs: [
    { name: 'same', type: 'FP32', dims: ['N'] },
    { name: 'negative', type: 'FP32', dims: ['N'] },
  ],
  operators: [
    { op: 'Identity', inputs: ['x'], outputs: ['same'] },
    { op: 'Neg', inputs: ['x'], outputs: ['negative'] },
  ],
}

const negateRequest = (value: number, ...requestedOutputs: string[]) =>
  stepRequest([fp32Tensor('x', [1, 1], [value])], { batchSize: 1, requestedOutputs })

await t.test('executions of one instance may be open together and run in order', async (t) => {
  const model = await loadModel(t, buildAddModel(2), ADD_CONFIG)
  t.ok((model.openExecutions ?? 1) > 1)
  const answered: number[] = []
  const { signal } = new AbortController()
  const one = async (first: number, rows: number) => {
    const sink = new RecordedResponses()
    const batch = [{ request: addRequest(rows, first), sink }]
    const times = await model.execute(batch, { instance: 0, signal })
    answered.push(first)
    return { values: fp32Values(sink.responses[0], 'sum'), times }
  }
  const all = await Promise.all(Array.from({ length: 40 }, (_, i) => one(i, 1 + (i % 8))))
  t.same(
    answered,
    all.map((_, i) => i),
  )
  for (const [i, { values, times }] of all.entries()) {
    t.same(values.slice(0, 2), [100 + i, 101 + i])
    t.ok((times.waitNs ?? 0) > 0, 'they waited for one another')
  }
})

await t.test('each request gets the outputs that it asked for', async (t) => {
  const config = modelConfig(
    [fp32Declared('x', [1])],
    [fp32Declared('same', [1]), fp32Declared('negative', [1])],
    {
      max_batch_size: 4,
    },
  )
  const spec = { ...TWO_OUTPUTS, inputs: [{ name: 'x', type: 'FP32' as const, dims: ['N', 1] }] }
  const outputs = TWO_OUTPUTS.outputs.map((output) => ({ ...output, dims: ['N', 1] }))
  const model = await loadModel(t, buildOnnx({ ...spec, outputs }), config)
  const responses = await executeOnce(model, [
    negateRequest(1, 'negative'),
    negateRequest(2, 'negative', 'same'),
    negateRequest(3),
    negateRequest(4, 'absent'),
  ])
  const names = responses.map((response) => response.outputs.map(({ name }) => name))
  t.same(names, [['negative'], ['negative', 'same'], ['same', 'negative'], []])
  t.same(fp32Values(responses[1], 'negative'), [-2])
  t.match(responses[3]?.error, {
    reason: 'INVALID_REQUEST',
    message: "unexpected inference output 'absent' for model 'm'",
  })
})

const bytesRequest = (...bytes: number[]) =>
  stepRequest(
    [
      {
        name: 'x',
        datatype: 'BYTES',
        shape: [1, 1],
        data: encodeBytesTensor([Uint8Array.from(bytes)]),
      },
    ],
    { batchSize: 1 },
  )

await t.test('a request that cannot run fails alone, before anything runs', async (t) => {
  const tensor = { name: 'x', type: 'TYPE_STRING' as const, dims: [1] }
  const model = await loadModel(
    t,
    buildOnnx(identitySpec('BYTES', ['N', 1])),
    modelConfig([tensor], [{ ...tensor, name: 'y' }], { max_batch_size: 8 }),
  )
  const responses = await executeOnce(model, [
    bytesRequest(0x61),
    stepRequest([fp32Tensor('z', [1, 1], [1])], { batchSize: 1 }),
    stepRequest([fp32Tensor('x', [1, 1], [1])], { batchSize: 1 }),
    bytesRequest(0x62),
  ])
  t.same(
    responses.map((response) => response.error?.reason),
    [undefined, 'INVALID_REQUEST', 'DATATYPE_MISMATCH', undefined],
  )
})

await t.test('elements of texts may hold any bytes', async (t) => {
  const tensor = { name: 'x', type: 'TYPE_STRING' as const, dims: [1] }
  const model = await loadModel(
    t,
    buildOnnx(identitySpec('BYTES', ['N', 1])),
    modelConfig([tensor], [{ ...tensor, name: 'y' }], { max_batch_size: 8 }),
  )
  const long = Array.from({ length: 100 }, () => 0x63)
  const elements = [[0x61], [0x61, 0, 0x62], [], [0], [0xff, 0xfe, 0], long, [...long, 0, ...long]]
  const requests = [...elements, [0x62]].map((bytes) => bytesRequest(...bytes))
  const responses = await executeOnce(model, requests)
  t.same(
    responses.map(({ outputs }) => [...(outputs[0]?.data ?? [])]),
    requests.map(({ inputs }) => [...(inputs[0]?.data ?? [])]),
  )
})

await t.test('an error of the runtime is an answer, and the instance goes on', async (t) => {
  const model = await loadModel(t, buildAddModel(2), ADD_CONFIG)
  const bad = stepRequest(
    [fp32Tensor('a', [1, 2], [1, 2]), fp32Tensor('b', [2, 2], [1, 2, 3, 4])],
    {
      batchSize: 1,
    },
  )
  const wrong = stepRequest([fp32Tensor('a', [1, 3], [1, 2, 3]), fp32Tensor('b', [1, 2], [1, 2])], {
    batchSize: 1,
  })
  const kernel = stepRequest(
    [fp32Tensor('a', [3, 2], [1, 2, 3, 4, 5, 6]), fp32Tensor('b', [2, 2], [1, 2, 3, 4])],
    {
      batchSize: 3,
    },
  )
  const missing = stepRequest([fp32Tensor('a', [1, 2], [1, 2])], { batchSize: 1 })
  const [failed] = await executeOnce(model, [wrong])
  t.match(failed?.error, {
    reason: 'ENGINE_FAILED',
    code: 'INTERNAL',
    message: /^onnx runtime error 2: Got/,
  })
  const [broken] = await executeOnce(model, [kernel])
  t.match(broken?.error?.message, /^onnx runtime error 6: Non-zero status code/)
  const [incomplete] = await executeOnce(model, [missing])
  t.match(incomplete?.error, { reason: 'ENGINE_FAILED', message: /onnx runtime error \d: .*b/s })
  // [1,2] + [2,2] broadcasts to two rows where one was wanted.
  const [spread] = await executeOnce(model, [bad])
  t.match(spread?.error, {
    reason: 'RESPONSE_INVALID',
    message: "output 'sum' of model 'm': shape [2,2], want 1 in the batch dimension",
  })
  const [good] = await executeOnce(model, [addRequest(1, 0)])
  t.same(fp32Values(good, 'sum'), [100, 101])
})

await t.test('large outputs come in buffers of their own', async (t) => {
  const width = 5000
  const model = await loadModel(
    t,
    buildAddModel(width),
    modelConfig(
      [fp32Declared('a', [width]), fp32Declared('b', [width])],
      [fp32Declared('sum', [width])],
      { max_batch_size: 4 },
    ),
  )
  const row = (value: number) => {
    const values = Array.from({ length: width }, () => value)
    return stepRequest([fp32Tensor('a', [1, width], values), fp32Tensor('b', [1, width], values)], {
      batchSize: 1,
    })
  }
  const [first] = await executeOnce(model, [row(1)])
  const responses = await executeOnce(model, [row(2), row(3)])
  t.equal(fp32Values(first, 'sum')[width - 1], 2)
  t.equal(fp32Values(responses[0], 'sum')[width - 1], 4)
  t.equal(fp32Values(responses[1], 'sum')[0], 6)
})

await t.test('scalars are served as [1] by models that do not batch', async (t) => {
  const model = await loadModel(
    t,
    buildOnnx(identitySpec('FP32', [])),
    modelConfig([fp32Declared('x', [1])], [fp32Declared('y', [1])]),
  )
  const [response] = await executeOnce(model, [stepRequest([fp32Tensor('x', [1], [7])])])
  t.equal(response?.error, undefined)
  t.same(response?.outputs[0]?.shape, [1])
  t.same(fp32Values(response, 'y'), [7])
})

await t.test('an optional input is used if it is there, and has its default if not', async (t) => {
  const data = new Uint8Array(Float32Array.of(10).buffer)
  const bytes = buildOnnx({
    inputs: [
      { name: 'x', type: 'FP32', dims: ['N'] },
      { name: 'scale', type: 'FP32', dims: [1] },
    ],
    outputs: [{ name: 'y', type: 'FP32', dims: ['N'] }],
    operators: [{ op: 'Mul', inputs: ['x', 'scale'], outputs: ['y'] }],
    initializers: [{ name: 'scale', type: 'FP32', dims: [1], data }],
  })
  const [x, y] = [fp32Declared('x', [-1]), fp32Declared('y', [-1])]
  const optional = { ...fp32Declared('scale', [1]), optional: true }
  const model = await loadModel(t, bytes, modelConfig([x, optional], [y]))
  const value = fp32Tensor('x', [2], [1, 2])
  const responses = await executeOnce(model, [
    stepRequest([value]),
    stepRequest([value, fp32Tensor('scale', [1], [3])]),
    stepRequest([value]),
  ])
  t.same(
    responses.map((response) => fp32Values(response, 'y')),
    [
      [10, 20],
      [3, 6],
      [10, 20],
    ],
  )
  const plain = await loadModel(t, bytes, modelConfig([x], [y]))
  const [response] = await executeOnce(plain, [stepRequest([value])])
  t.same(fp32Values(response, 'y'), [10, 20])
})

/** A model whose output is its input `d`, which has a default. */
function defaultSpec(datatype: Datatype, initializer: Partial<InitializerSpec>): OnnxSpec {
  const tensor = { name: 'd', type: datatype, dims: [2] }
  return {
    inputs: [tensor],
    outputs: [{ ...tensor, name: 'y' }],
    operators: [{ op: 'Identity', inputs: ['d'], outputs: ['y'] }],
    initializers: [{ ...tensor, ...initializer }],
  }
}

await t.test('defaults of every datatype are fed byte for byte', async (t) => {
  for (const datatype of Object.keys(DATATYPES).filter(isDatatype)) {
    const { itemSize, config } = DATATYPES[datatype]
    const texts = ['', 'grüße']
    const data =
      itemSize === null
        ? encodeBytesTensor(texts.map((text) => Buffer.from(text)))
        : Uint8Array.from({ length: 2 * itemSize }, (_, i) => (datatype === 'BOOL' ? i : i + 1))
    const model = await loadModel(
      t,
      buildOnnx(defaultSpec(datatype, itemSize === null ? { strings: texts } : { data })),
      modelConfig(
        [{ name: 'd', type: config, dims: [2], optional: true }],
        [{ name: 'y', type: config, dims: [2] }],
      ),
    )
    const [response] = await executeOnce(model, [stepRequest([])])
    t.equal(response?.error, undefined, datatype)
    t.same([...(response?.outputs[0]?.data ?? [])], [...data], datatype)
  }
})

await t.test('a default may lie in a file beside the model', async (t) => {
  const directory = await writeModel(t, buildOnnx(defaultSpec('FP32', { file: 'weights.bin' })))
  await writeFile(join(directory, 'weights.bin'), new Uint8Array(Float32Array.of(4, 5).buffer))
  const optional = { ...fp32Declared('d', [2]), optional: true }
  const config = modelConfig([optional], [fp32Declared('y', [2])])
  const model = await createOnnxEngine().load(modelSource(directory, config), { instances: 1 })
  t.teardown(() => model.close())
  const [response] = await executeOnce(model, [stepRequest([])])
  t.same(fp32Values(response, 'y'), [4, 5])
})

await t.test('a default that does not fit its input is a load error', async (t) => {
  const optional = { ...fp32Declared('d', [2]), optional: true }
  const config = modelConfig([optional], [fp32Declared('y', [2])])
  const cases = [
    {
      type: 'FP64' as const,
      data: new Uint8Array(16),
      text: /initializer 'd' has element type tensor\(double\) but .* expects tensor\(float\)/,
    },
    { dims: [3], data: new Uint8Array(8), text: /Shape of initializer d does not match/ },
  ]
  for (const { text, ...initializer } of cases) {
    await t.rejects(loadModel(t, buildOnnx(defaultSpec('FP32', initializer)), config), {
      name: 'ServeError',
      reason: 'MODEL_LOAD_FAILED',
      message: text,
    })
  }
})
