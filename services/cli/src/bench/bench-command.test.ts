import { createSignalSource, until } from '@tutti/chassis/testing'
import { DATATYPES, isDatatype, NUMBER_READERS } from '@tutti/tensor'
import * as fc from 'fast-check'
import t from 'tap'
import { echo, serveEcho } from '../testing/echo-server.ts'
import { runCommand } from '../testing/run-command.ts'
import { makeInput } from './bench-inputs.ts'
import { toResult } from './bench-result.ts'
import { renderHead, renderPlot, renderRows } from './bench-text.ts'
import { Tally } from './tally.ts'

const MODELS = {
  numbers: echo('FP32', [3], 'max_batch_size: 8'),
  texts: echo('STRING', [2]),
  stream: echo('INT32', [1], 'model_transaction_policy { decoupled: true }'),
  failing: echo('INT32', [1], 'parameters { key: "fails" value { string_value: "yes" } }'),
}
const SHORT = ['--duration=1', '--warm-up=0']
const bench = (...argv: readonly string[]) => runCommand(['bench', ...argv, ...SHORT])

await t.test('`tutti bench` loads a server', async (t) => {
  const serving = await serveEcho(t, MODELS)
  const both = [`--url=${serving.grpc}`, `--url=${serving.rest}`]

  const [compared, open, stream, texts, failing] = await Promise.all([
    bench('numbers', '--shape=a=b=2,3', '--concurrency=1,3', ...both, '--format=json'),
    bench('numbers', '-i=a=b=[[1,2,3]]', '--rate=40', `--url=${serving.rest}`),
    bench('stream', `--url=${serving.grpc}`, '--format=json'),
    bench('texts', `--url=${serving.grpc}`, '--format=json'),
    bench('failing', ...both, '--format=json'),
  ])

  await t.test('it loads two servers in turns, over both protocols', async (t) => {
    const { code, out, err } = compared
    t.same({ code, err }, { code: 0, err: '' })
    const { results, ...run } = JSON.parse(out)
    t.match(run, {
      model: 'numbers',
      version: null,
      inputs: [{ name: 'a=b', datatype: 'FP32', shape: [2, 3] }],
      wasInterrupted: false,
    })
    t.match(results, [
      { target: 'A', url: serving.grpc, concurrency: 1, rate: null },
      { target: 'B', url: serving.rest, concurrency: 1 },
      { target: 'A', concurrency: 3 },
      { target: 'B', concurrency: 3 },
    ])
    for (const { answered, failed, seconds, answersPerSecond, latencyMs } of results) {
      t.ok(answered > 0 && failed === 0)
      t.ok(Math.abs(answersPerSecond * seconds - answered) < 1e-6 * answered)
      const { p50, p90, p99, p999, max } = latencyMs
      t.ok(p50 > 0 && p50 <= p90 && p90 <= p99 && p99 <= p999 && p999 <= max)
    }
  })

  await t.test('it prints an open loop as text, with inputs of the command line', async (t) => {
    const { code, out } = open
    t.equal(code, 0)
    t.match(out, /^numbers, 1 s for each load.*\nA {2}http:.*\n\n {2}load .*requests\/s/)
    t.match(out, /^A 40\/s +[0-9.]+ +0 /m)
    t.match(out, /^ {2}p99\.9 █/m)
  })

  await t.test('it loads models that stream and models of texts', async (t) => {
    for (const { code, out } of [stream, texts]) {
      t.equal(code, 0)
      t.match(JSON.parse(out).results, [{ failed: 0, answered: Number }])
    }
  })

  await t.test('it counts failures by reason, and never as answers', async (t) => {
    const { code, out } = failing
    t.equal(code, 1)
    for (const { answered, failed, failures, latencyMs } of JSON.parse(out).results) {
      t.equal(answered, 0)
      t.equal(latencyMs, null)
      t.match(failures, [
        { reason: 'INVALID_REQUEST', count: failed, message: /does not like that/ },
      ])
    }
  })

  await t.test('it prints the results so far when the user ends it', async (t) => {
    const signals = createSignalSource()
    const argv = ['bench', 'numbers', '--shape=a=b=1,3', `--url=${serving.rest}`]
    const running = runCommand([...argv, '--duration=3600', '--format=json'], { signals })
    await until('the load', () => signals.listeners > 0)
    signals.send('SIGINT')
    const { out, err } = await running
    t.equal(err, '')
    const { wasInterrupted, results } = JSON.parse(out)
    t.ok(wasInterrupted)
    t.ok(results[0].seconds < 3600)
    t.equal(signals.listeners, 0)
  })

  await t.test('it refuses flags and models that it does not know', async (t) => {
    const at = `--url=${serving.grpc}`
    const wants = /'a=b' is FP32\[-1,3\]; want its sizes, such as --shape a=b=1,3, or its values/
    t.match(await bench('numbers', at), { code: 2, err: wants, out: '' })
    t.match(await bench('numbers', at, '--shape=a=b=1,4'), { code: 2, err: /for \[-1,3\]/ })
    t.match(await bench('nothing', at), { code: 1, err: /nothing/ })
    t.match(await bench(), { code: 2, err: /got 0 model names, want one/ })
    t.match(await bench('numbers', '--rate=1', '--concurrency=1'), { code: 2, err: /want one of/ })
    t.match(await bench('numbers', ...Array.from({ length: 5 }, () => at)), {
      code: 2,
      err: /--url: got 5, want at most 4/,
    })
    t.match(await bench('numbers', at, '--url=tcp://x'), { code: 2, err: /--url: got 'tcp:/ })
    t.match(await bench('numbers', at, '--svg=x'), { code: 2, err: /unknown flag --svg/ })
  })
})

await t.test('`tutti bench` goes on when a server goes away', async (t) => {
  const serving = await serveEcho(t, MODELS)
  const signals = createSignalSource()
  const argv = ['bench', 'texts', `--url=${serving.grpc}`, `--url=${serving.rest}`, ...SHORT]
  const running = runCommand([...argv, '--format=json'], { signals })
  await until('the load', () => signals.listeners > 0)
  await serving.close()
  const { code, out } = await running
  t.equal(code, 1, 'though there may be answers')
  for (const { failed, failures } of JSON.parse(out).results) {
    t.ok(failed > 0)
    t.ok(
      failures.every(({ reason }: { reason: string }) => reason.startsWith('SERVER_')),
      failures,
    )
  }
})

await t.test('made inputs have the datatype and shape that the model declares', async (t) => {
  const datatypes = Object.keys(DATATYPES).filter(isDatatype)
  const shapes = fc.array(fc.nat(5), { maxLength: 4 })
  const holds = fc.property(fc.constantFrom(...datatypes), shapes, (datatype, shape) => {
    const { data, ...tensor } = makeInput({ name: 'x', datatype, shape: [...shape] }, undefined)
    const count = shape.reduce((product, extent) => product * extent, 1)
    const view = new DataView(data.buffer, data.byteOffset, data.byteLength)
    const read = NUMBER_READERS[datatype]
    const isFloat = /^(FP|BF)/.test(datatype)
    const values = Array.from({ length: read ? count : 0 }, (_, i) => Number(read?.(view, i)))
    return (
      data.byteLength === count * (DATATYPES[datatype].itemSize ?? 5) &&
      tensor.shape.length === shape.length &&
      values.every((value) => (isFloat ? value >= 0 && value <= 1 : value === 0 || value === 1))
    )
  })
  fc.assert(holds)
  const { data } = makeInput({ name: 'x', datatype: 'BYTES', shape: [2, 70_000_000] }, undefined)
  t.equal(data.byteLength, 700_000_000, 'more texts than an array of Node can have')
  t.same(data.subarray(-10), [1, 0, 0, 0, 0x61, 1, 0, 0, 0, 0x61])
  const huge = { name: 'x', datatype: 'FP32', shape: [-1, -1] } as const
  t.throws(() => makeInput(huge, '99999,99999'), { message: /has 39999200004 bytes, want at most/ })
})

await t.test('the text has no control characters', async () => {
  const text = fc.oneof(fc.string({ unit: 'binary', maxLength: 80 }), fc.constant('<a href="&">'))
  const load = fc.oneof(
    fc.record({
      kind: fc.constant('closed' as const),
      concurrency: fc.integer({ min: 1, max: 99 }),
    }),
    fc.record({
      kind: fc.constant('open' as const),
      rate: fc.double({ min: 1, max: 1e6, noNaN: true }),
    }),
  )
  const latencies = fc.array(fc.double({ min: 0, max: 1e7, noNaN: true }), { maxLength: 30 })
  const holds = fc.property(
    text,
    fc.array(fc.tuple(text, load, latencies), { maxLength: 12 }),
    (model, runs) => {
      const results = runs.map(([url, load, latencies]) => {
        const tally = new Tally()
        tally.elapsedMs = 1000
        for (const ms of latencies) tally.answered(ms)
        tally.failed(new Error(url))
        return toResult({ label: 'A', url }, load, tally)
      })
      const urls = runs.map(([url]) => url)
      const lines = [
        renderHead({ model, seconds: 1, urls }),
        renderRows(results),
        renderPlot(results),
      ].join('')
      return !/[\p{Cc}\p{Cf}]/u.test(lines.replaceAll('\n', '')) && !/NaN|Infinity/.test(lines)
    },
  )
  fc.assert(holds, { numRuns: 60 })
})
