import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { InferenceClient } from '@tutti/protocol/client'
import t, { type Test } from 'tap'
import { echo, serveEcho } from '../testing/echo-server.ts'

const MODELS = {
  images: echo('FP32', [1, 32, 100], 'max_batch_size: 128'),
  texts: echo('STRING', [1]),
  stream: echo('FP32', [3], 'model_transaction_policy { decoupled: true }'),
}
const CUT = [
  { model: 'images', datatype: 'FP32', shape: [100, 1, 32, 100], says: /byte size/ },
  { model: 'texts', datatype: 'BYTES', shape: [1], says: /incomplete string/ },
]
/** Two numbers; as texts: one that says that it has more bytes than come. */
const BYTES = Buffer.from(new Float32Array([1.5, 2]).buffer)

async function serve(t: Test, level: string) {
  const folder = t.testdir()
  const file = join(folder, 'trace.json')
  const argv = [`--trace-config=triton,file=${file}`, '--trace-config=rate=1']
  const serving = await serveEcho(t, MODELS, [...argv, `--trace-config=level=${level}`], folder)
  const client = new InferenceClient({ address: new URL(serving.grpc).host })
  t.teardown(() => client.close())
  return { file, serving, client }
}

for (const level of ['TENSORS', 'TIMESTAMPS']) {
  await t.test(`bytes that are cut short get the same refusal with level=${level}`, async (t) => {
    const { file, serving, client } = await serve(t, level)
    for (const { model, datatype, shape, says } of CUT) {
      const input = { name: 'a=b', datatype, shape }
      const request = { model_name: model, inputs: [input], raw_input_contents: [BYTES] }
      const overGrpc = await new Promise((resolve) => {
        client.objects.ModelInfer(request, resolve)
      })
      t.match(overGrpc, { code: 3, details: says }, `${model} over gRPC`)
      const parameters = { binary_data_size: BYTES.byteLength }
      const head = Buffer.from(JSON.stringify({ inputs: [{ ...input, parameters }] }))
      const overRest = await fetch(`${serving.rest}/v2/models/${model}/infer`, {
        method: 'POST',
        headers: { 'inference-header-content-length': String(head.byteLength) },
        body: Buffer.concat([head, BYTES]),
      })
      t.match(await overRest.json(), { error: says }, `${model} over REST`)
      t.equal(overRest.status, 400)
    }
    await serving.close()
    const events: readonly object[] = JSON.parse(await readFile(file, 'utf8'))
    t.ok(events.length >= 2 * CUT.length, 'they are traced as well')
  })
}

await t.test('a stream goes on after a request that is cut short', async (t) => {
  const { client } = await serve(t, 'TENSORS')
  const stream = client.objects.ModelStreamInfer()
  const input = { name: 'a=b', datatype: 'FP32', shape: [3] }
  const send = (id: string, bytes: Buffer): void => {
    const request = { model_name: 'stream', id, inputs: [input], raw_input_contents: [bytes] }
    stream.write(request)
  }
  send('cut', BYTES)
  send('whole', Buffer.alloc(12))
  stream.end()
  const answers: unknown[] = []
  for await (const answer of stream) answers.push(answer)
  t.match(answers[0], { error_message: /byte size/ })
  t.equal(answers.length, 4, 'the refusal, and three responses')
})
