import { spawnSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildOnnx } from '@tutti/builtins'
import type { Datatype } from '@tutti/tensor'
import * as fc from 'fast-check'
import t from 'tap'
import { writeModelFile } from '../testing/add-model.ts'
import { executeOnce } from '../testing/execute.ts'
import { modelConfig, modelSource, stepRequest } from '../testing/model-source.ts'
import { CAN_TRAP, codeRange, HANDLER } from './division-trap.ts'
import { createOnnxEngine } from './onnx-engine.ts'

const ARRAYS = { INT8: Int8Array, INT16: Int16Array, INT32: Int32Array, INT64: BigInt64Array }

/** Computes `op` of pairs of numbers, in the type of ONNX Runtime. */
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
  'idiv qword [rip+0x40]': '48f73d40000000',
} as const
const TEST_OF_FORMS = `
import { createRequire } from 'node:module'
import { installHandler, makeExecutable } from '${new URL('./division-trap.ts', import.meta.url).href}'
const koffi = createRequire('${import.meta.url}')('koffi')
const { dividend, divisors, isOutside, former } = JSON.parse(process.argv[1])
const minusOnes = Buffer.alloc(4096, 0xff)
const libC = koffi.load(null)
const setAction = (address) => {
  const action = Buffer.alloc(152)
  action.writeBigUInt64LE(address)
  action.writeInt32LE(4, 136)
  libC.func('int sigaction(int, void*, void*)')(8, action, null)
}
if (former !== undefined) setAction(makeExecutable(koffi, Buffer.from(former, 'hex')))
const handler = () => {
  const action = Buffer.alloc(152)
  libC.func('int sigaction(int, void*, void*)')(8, null, action)
  return action.readBigUInt64LE()
}
const answers = divisors.map(([divide, isWide]) => {
  const pushes = '4154415541564157' + '5355'
  const pops = '5d5b' + '415f415e415d415c'
  const begin = pushes + (isWide ? '48b8' + dividend + '4899' : 'b8' + dividend.slice(8) + '99')
  // Quotient and rest together, the end, and a divisor for those that look behind it.
  const code = Buffer.from(begin + divide + (isWide ? '4801d0' : '01d0') + pops + 'c3' + 'ff'.repeat(1024), 'hex')
  const at = makeExecutable(koffi, code)
  const range = isOutside ? [at + 4096n, at + 8192n] : [at, at + 4096n]
  installHandler(koffi, range)
  const installed = handler()
  for (let i = 0; i < 9; i++) installHandler(koffi, range)
  if (handler() !== installed) return 'installed again'
  const f = koffi.decode(at, koffi.proto('int64_t', ['void*', 'int64_t']))
  return BigInt.asIntN(isWide ? 64 : 32, BigInt(f(minusOnes.subarray(1024), 2))).toString()
})
console.log(JSON.stringify(answers))
`

interface Divisions {
  readonly dividend: string
  /** Machine code that divides, and whether it divides 64 bits. */
  readonly divisors: readonly (readonly [string, boolean])[]
  readonly isOutside?: boolean
  /** Machine code of a handler that was there before. */
  readonly former?: string
}

function run(o: Divisions) {
  const args = ['--input-type=module', '-e', TEST_OF_FORMS, JSON.stringify(o)]
  const { signal, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' })
  return { signal, answers: stdout === '' ? stderr : JSON.parse(stdout) }
}

const LEAST = '0000000000000080'
const skip = !CAN_TRAP && 'the processor does not trap, or there is no handler for this system'

await t.test('every form of the instruction is repaired', { skip }, async (t) => {
  const wide = Object.values(FORMS).map((divide) => [divide, true] as const)
  const codes = ['b9fffffffff7f9', '41b9ffffffff41f7f9', 'f73f', 'f77f08']
  const narrow = codes.map((divide) => [divide, false] as const)
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
  const divisors = [[FORMS['idiv rcx'], true] as const]
  const elsewhere = { dividend: LEAST, divisors, isOutside: true }
  t.equal(run(elsewhere).signal, 'SIGFPE')
})

const [RAX, RDX, RSP, RBP, RDI] = [0, 2, 4, 5, 7]
/** Registers that hold no part of the dividend, nor the stack. */
const register = fc.integer({ min: 0, max: 15 }).filter((r) => ![RAX, RDX, RSP].includes(r))
/** An instruction by the fields of its encoding. @see Intel SDM, volume 2, 2.1 */
const division = fc.record({
  isWide: fc.boolean(),
  kind: fc.constantFrom('register', 'base', 'index', 'index alone', 'stack', 'code'),
  base: register,
  index: register,
  scale: fc.nat(3),
  mod: fc.constantFrom(0, 1, 2),
  hasEmptyRex: fc.boolean(),
})
type Division = typeof division extends fc.Arbitrary<infer T> ? T : never

const hex = (...bytes: readonly number[]) => Buffer.from(bytes).toString('hex')
const int32 = (value: number) => {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32LE(value)
  return bytes.toString('hex')
}
/** Moves an address of -1s, or a number, into a register. */
const moveAddress = (to: number) => hex(0x48 | (to >> 3), 0x89, 0xc0 | (RDI << 3) | (to & 7))
const moveNumber = (to: number, value: number) =>
  hex(0x48 | (to >> 3), 0xc7, 0xc0 | (to & 7)) + int32(value)

/** The instruction, of a REX prefix if it needs one, a ModRM byte and what follows. */
function instruction(
  { isWide, hasEmptyRex }: Division,
  rex: number,
  modrm: number,
  rest = '',
): string {
  const prefix = rex | (isWide ? 8 : 0)
  const first = prefix === 0 && !hasEmptyRex ? '' : hex(0x40 | prefix)
  return first + hex(0xf7, modrm | 0x38) + rest
}

/** In each kind of place, machine code that divides by the -1 there, with what its registers need. */
const PLACES: Readonly<Record<string, (one: Division) => string>> = {
  register: (one) =>
    moveNumber(one.base, -1) + instruction(one, one.base >> 3, 0xc0 | (one.base & 7)),
  // The code of the test ends with -1s.
  code: (one) => instruction(one, 0, 5, int32(64)),
  stack: (one) => {
    const place = ['', hex(0x40), int32(0x40)][one.mod] ?? ''
    const popped = hex(0x48, 0x81, 0xc4) + int32(16 * 8)
    return (
      hex(0x6a, 0xff).repeat(16) +
      instruction(one, 0, (one.mod << 6) | 4, hex(0x24) + place) +
      popped
    )
  },
  // No base: what follows has 32 bits, in which no address fits, so the index has it.
  'index alone': (one) => {
    const sib = hex(((one.index & 7) << 3) | RBP)
    return moveAddress(one.index) + instruction(one, (one.index >> 3) << 1, 4, sib + int32(0x20))
  },
  index: (one) => {
    const { base, index, scale } = one
    if (index === base) return PLACES['base']?.(one) ?? ''
    const sib = hex((scale << 6) | ((index & 7) << 3) | (base & 7))
    const rex = ((index >> 3) << 1) | (base >> 3)
    const [mod, place] = displacementOf(one)
    const moved = moveAddress(base) + moveNumber(index, 3)
    return moved + instruction(one, rex, (mod << 6) | 4, sib + place)
  },
  base: (one) => {
    const { base } = one
    const [mod, place] = displacementOf(one)
    const sib = (base & 7) === RSP ? hex(0x24) : ''
    return moveAddress(base) + instruction(one, base >> 3, (mod << 6) | (base & 7), sib + place)
  },
}

/** Without a displacement 5 is no base, so it has one of 0. */
function displacementOf({ base, mod }: Division): readonly [number, string] {
  if (mod === 0 && (base & 7) === RBP) return [1, hex(0)]
  return [mod, ['', hex(0x70), int32(-0x180)][mod] ?? '']
}

await t.test('so is whatever a compiler writes, with any registers', { skip }, async (t) => {
  const divisions = fc.sample(division, { numRuns: 300, seed: 1 })
  const divisors = divisions.map((one) => [PLACES[one.kind]?.(one) ?? '', one.isWide] as const)
  const { signal, answers } = run({ dividend: LEAST, divisors })
  t.equal(signal, null)
  const least = { true: String(-(2n ** 63n)), false: String(-(2 ** 31)) }
  const wrong = divisions.flatMap((one, i) =>
    answers[i] === least[`${one.isWide}`]
      ? []
      : [{ ...one, code: divisors[i]?.[0], got: answers[i] }],
  )
  t.same(wrong, [])
})

await t.test('a handler that was there before gets every other trap', { skip }, async (t) => {
  // It goes on behind the instruction, with 42.
  const former = '48c782900000002a000000488382a800000003c3'
  const elsewhere = {
    dividend: LEAST,
    divisors: [[FORMS['idiv rcx'], true]],
    isOutside: true,
  } as const
  t.same(run({ ...elsewhere, former }), { signal: null, answers: ['41'] }, '42 and the rest of -1')
})

await t.test('the bytes of the handler are what stands beside them', async (t) => {
  const lines = [...HANDLER.matchAll(/^ {2}([0-9a-f]+) +(.+)$/gm)]
  const folder = await mkdtemp(join(tmpdir(), 'tutti-handler-'))
  t.teardown(() => rm(folder, { recursive: true }))
  const file = join(folder, 'code')
  const bytes = lines.map(([, code = '']) => code.trim()).join('')
  await writeFile(file, Buffer.from(bytes, 'hex'))
  const args = [
    '-D',
    '-b',
    'binary',
    '-m',
    'i386:x86-64',
    '-M',
    'intel',
    '--no-show-raw-insn',
    file,
  ]
  const { stdout, error } = spawnSync('objdump', args, { encoding: 'utf8' })
  if (error !== undefined) return t.comment('there is no objdump')
  // Labels are addresses there.
  const labels = new Map<string, number>()
  let at = 0
  for (const line of HANDLER.split('\n')) {
    const [, label] = /^ +(\w+):$/.exec(line) ?? []
    if (label !== undefined) labels.set(label, at)
    at += (/^ {2}([0-9a-f]+) /.exec(line)?.[1]?.length ?? 0) / 2
  }
  const said = lines.map(([, , text = '']) =>
    text
      .replace(/ (\w+)$/, (all, name) =>
        labels.has(name) ? ` 0x${labels.get(name)?.toString(16)}` : all,
      )
      .replace('BEGIN', '0x1111111111111111')
      .replace('END', '0x2222222222222222'),
  )
  const found = [...stdout.matchAll(/^ +[0-9a-f]+:\t(.+?)(?: +#.*)?$/gm)].map(([, text = '']) =>
    text
      .replace(/ +/g, ' ')
      .replace(/QWORD PTR /, '')
      .replace(/BYTE PTR/, 'byte')
      .trim(),
  )
  t.same(found, said)
})

await t.test('the code of a library is where the system says', (t) => {
  const maps = `7f00-7f10 r--p 0 00:1 1    /lib/libonnx.so.1
7f10-7f30 r-xp 0 00:1 1    /lib/libonnx.so.1
8f10-8f30 r-xp 0 00:1 1    /lib/libonnx.so.1.2`
  t.same(codeRange(maps, '/lib/libonnx.so.1'), [0x7f10n, 0x7f30n])
  t.equal(codeRange(maps, '/lib/other.so'), undefined)
  t.end()
})
