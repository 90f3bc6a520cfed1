import { spawnSync } from 'node:child_process'
import type { Datatype } from '@tutti/tensor'
import t from 'tap'
import { writeModelFile } from '../testing/add-model.ts'
import { executeOnce } from '../testing/execute.ts'
import { modelConfig, modelSource, stepRequest } from '../testing/model-source.ts'
import { buildOnnx } from '../testing/onnx-writer.ts'
import { CAN_TRAP, codeRange } from './division-trap.ts'
import { createOnnxEngine } from './onnx-engine.ts'

const ARRAYS = { INT8: Int8Array, INT16: Int16Array, INT32: Int32Array, INT64: BigInt64Array }

/** What `op` makes of pairs of numbers, in the type of ONNX Runtime. */
async function divide(op: 'Div' | 'Mod', type: keyof typeof ARRAYS, pairs: readonly bigint[][]) {
  const port = { type, dims: ['N'] } as const
  const bytes = buildOnnx({
    inputs: ['a', 'b'].map((name) => ({ name, ...port })),
    outputs: [{ name: 'y', ...port }],
    operators: [{ op, inputs: ['a', 'b'], outputs: ['y'] }],
  })
  const { directory, remove } = await writeModelFile(bytes)
  const declared = (name: string) => ({ name, type: `TYPE_${type}` as const, dims: [-1] })
  const config = modelConfig([declared('a'), declared('b')], [declared('y')])
  const model = await createOnnxEngine().load(modelSource(directory, config), { instances: 1 })
  const array = (values: readonly bigint[]) =>
    type === 'INT64' ? BigInt64Array.from(values) : ARRAYS[type].from(values.map(Number))
  const inputs = ['a', 'b'].map((name, i) => {
    const { buffer } = array(pairs.map((pair) => pair[i] ?? 0n))
    const datatype: Datatype = type
    return { name, datatype, shape: [pairs.length], data: new Uint8Array(buffer) }
  })
  try {
    const [response] = await executeOnce(model, [stepRequest(inputs)])
    const { buffer } = new Uint8Array(response?.outputs[0]?.data ?? [])
    return { error: response?.error, values: [...new ARRAYS[type](buffer)].map(BigInt) }
  } finally {
    await model.close()
    await remove()
  }
}

await t.test('the least integer divided by -1 is itself, and ends nothing', async (t) => {
  for (const [type, bits] of [
    ['INT8', 8n],
    ['INT16', 16n],
    ['INT32', 32n],
    ['INT64', 64n],
  ] as const) {
    const least = -(2n ** (bits - 1n))
    const numbers = [least, least + 1n, -1n, 0n, 1n, 7n, -(least + 1n)]
    const pairs = numbers.flatMap((a) => [-1n, 1n, 2n, -3n, least].map((b) => [a, b]))
    const quotients = pairs.map(([a = 0n, b = 1n]) => BigInt.asIntN(Number(bits), a / b))
    t.same((await divide('Div', type, pairs)).values, quotients, type)
    // The rest has the sign of the divisor.
    const rests = pairs.map(([a = 0n, b = 1n]) => ((a % b) + b) % b)
    t.same((await divide('Mod', type, pairs)).values, rests, type)
    const refused = await divide('Div', type, [[least, 0n]])
    t.match(refused.error, { reason: 'ENGINE_FAILED', message: /division by zero/i }, type)
  }
})

/** Divides by what follows, in each form that the instruction has; rdi is an address of -1s, rsi a place behind it. */
const FORMS = {
  'idiv rcx': '48c7c1ffffffff48f7f9',
  'idiv r9': '49c7c1ffffffff49f7f9',
  'idiv qword [rdi]': '48f73f',
  'idiv qword [rdi+8]': '48f77f08',
  'idiv qword [rdi+0x40]': '48f7bf40000000',
  'idiv qword [rdi+rsi*8]': '48f73cf7',
  'idiv qword [rdi+rsi*8+8]': '48f77cf708',
  'idiv qword [rdi+rsi*8+0x40]': '48f7bcf740000000',
  'idiv qword [rip+4]': '48f73d04000000',
} as const
const TEST_OF_FORMS = `
import { createRequire } from 'node:module'
import { installHandler, makeExecutable } from '${new URL('./division-trap.ts', import.meta.url).href}'
const koffi = createRequire('${import.meta.url}')('koffi')
const { dividend, divisors, isOutside } = JSON.parse(process.argv[1])
const minusOnes = Buffer.alloc(256, 0xff)
const answers = divisors.map(([divide, isWide]) => {
  const begin = isWide ? '48b8' + dividend + '4899' : 'b8' + dividend.slice(8) + '99'
  // Quotient and rest together, the end, and a divisor for those that look behind it.
  const code = Buffer.from(begin + divide + (isWide ? '4801d0' : '01d0') + 'c3' + 'ff'.repeat(16), 'hex')
  const at = makeExecutable(koffi, code)
  installHandler(koffi, isOutside ? [at + 4096n, at + 8192n] : [at, at + 4096n])
  const f = koffi.decode(at, koffi.proto('int64_t', ['void*', 'int64_t']))
  return BigInt.asIntN(isWide ? 64 : 32, BigInt(f(minusOnes, 2))).toString()
})
console.log(JSON.stringify(answers))
`

function run(o: object) {
  const args = ['--input-type=module', '-e', TEST_OF_FORMS, JSON.stringify(o)]
  const { signal, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' })
  return { signal, answers: stdout === '' ? stderr : JSON.parse(stdout) }
}

const LEAST = '0000000000000080'
const skip = !CAN_TRAP && 'the processor does not trap, or there is no handler for this system'

await t.test('every form of the instruction is repaired', { skip }, async (t) => {
  const wide = Object.values(FORMS).map((divide) => [divide, true])
  const narrow = ['b9fffffffff7f9', '41b9ffffffff41f7f9', 'f73f', 'f77f08'].map((divide) => [
    divide,
    false,
  ])
  const { signal, answers } = run({ dividend: LEAST, divisors: [...wide, ...narrow] })
  t.equal(signal, null)
  t.same(answers, [
    ...wide.map(() => String(-(2n ** 63n))),
    ...narrow.map(() => String(-(2 ** 31))),
  ])
})

await t.test('every other trap ends the process as before', { skip }, async (t) => {
  const byZero = '48c7c10000000048f7f9'
  t.equal(run({ dividend: '0700000000000000', divisors: [[byZero, true]] }).signal, 'SIGFPE')
  const elsewhere = { dividend: LEAST, divisors: [[FORMS['idiv rcx'], true]], isOutside: true }
  t.equal(run(elsewhere).signal, 'SIGFPE')
})

await t.test('the code of a library is where the system says', (t) => {
  const maps = `7f00-7f10 r--p 0 00:1 1    /lib/libonnx.so.1
7f10-7f30 r-xp 0 00:1 1    /lib/libonnx.so.1
8f10-8f30 r-xp 0 00:1 1    /lib/libonnx.so.1.2`
  t.same(codeRange(maps, '/lib/libonnx.so.1'), [0x7f10n, 0x7f30n])
  t.equal(codeRange(maps, '/lib/other.so'), undefined)
  t.end()
})
