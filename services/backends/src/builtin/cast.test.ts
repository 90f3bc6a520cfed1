import t from 'tap'
import { openBuiltins, Refused } from '../testing/builtin-steps.ts'
import { equalTensors, numberTensor } from '../testing/random-tensors.ts'

await t.test('a cast of floats that do not fit gives the nearest integer', async (t) => {
  const run = await openBuiltins(t)
  const values = [Number.NaN, Infinity, -Infinity, -1.5, 1e30, -1e30]
  for (const datatype of ['FP32', 'FP64'] as const) {
    const input = numberTensor('input', datatype, [6], values)
    for (const [to, most, least] of [
      ['UINT8', 255, 0],
      ['INT16', 32_767, -32_768],
      // The greatest integer that FP32 has.
      ['INT32', datatype === 'FP32' ? 2 ** 31 - 128 : 2 ** 31 - 1, -(2 ** 31)],
    ] as const) {
      const [got] = await run(t, { name: 'cast', datatype: to }, [input])
      const want = numberTensor('', to, [6], [0, most, least, Math.max(least, -1), most, least])
      equalTensors(t, got, want, `${datatype} to ${to}`)
    }
  }
})

await t.test('floats beyond a wide integer give the greatest that the float has', async (t) => {
  const run = await openBuiltins(t)
  for (const [from, to, most] of [
    ['FP32', 'UINT64', 18_446_742_974_197_923_840n],
    ['FP32', 'INT64', 9_223_371_487_098_961_920n],
    ['FP64', 'INT64', 9_223_372_036_854_774_784n],
    ['FP64', 'UINT64', 18_446_744_073_709_549_568n],
  ] as const) {
    const input = numberTensor('input', from, [2], [1e30, Infinity])
    const [got] = await run(t, { name: 'cast', datatype: to }, [input])
    const words = new BigUint64Array(new Uint8Array(got?.data ?? []).buffer)
    t.same([...words], [most, most], `${from} to ${to}`)
  }
})

await t.test('a sum of integers beyond the range wraps around, as that of NumPy', async (t) => {
  const run = await openBuiltins(t)
  const most = 2 ** 31 - 1
  for (const [values, sum] of [
    [[most, 1], -(2 ** 31)],
    [[most, most, most], 2_147_483_645],
    [[-(2 ** 31), -1], most],
    [[16_777_217, 0], 16_777_217],
  ] as const) {
    const input = numberTensor('input', 'INT32', [values.length], values)
    const [got] = await run(t, { name: 'reduce', op: 'sum' }, [input])
    equalTensors(t, got, numberTensor('', 'INT32', [1], [sum]), values.join(' + '))
  }
})

await t.test(
  'a number that JSON has rounded is refused, and so is one that is 0 as FP32',
  async (t) => {
    const run = await openBuiltins(t)
    const input = numberTensor('input', 'INT64', [1], [0])
    const condition = numberTensor('condition', 'BOOL', [1], [0])
    const want = 'a whole number between -2^53 and 2^53, which are exact'
    for (const [given, path, others] of [
      [{ name: 'arithmetic', op: 'add' }, 'value', []],
      [{ name: 'compare', op: 'equal' }, 'value', []],
      [{ name: 'where' }, 'value', [condition]],
      [{ name: 'pad', widths: [[1, 1]] }, 'value', []],
      [{ name: 'clip' }, 'max', []],
    ] as const) {
      const option = JSON.parse(`{"${path}":9007199254740993}`)
      await t.rejects(
        run(t, { ...given, ...option }, [...others, input]),
        new Refused([{ path, got: '9007199254740992', want }]),
        given.name,
      )
      await run(t, { ...given, [path]: 2 ** 53 - 1 }, [...others, input])
    }
    const image = numberTensor('image', 'FP32', [1, 1, 1], [1])
    await t.rejects(
      run(t, { name: 'normalise', std: [1e-46] }, [image]),
      new Refused([{ path: 'std[0]', got: '1e-46', want: 'a number that is not 0 as FP32' }]),
    )
  },
)

await t.test(
  'a number that the datatype does not have is refused, or rounded to one',
  async (t) => {
    const run = await openBuiltins(t)
    const half = numberTensor('input', 'FP16', [3], [0.1, 0, Number.NaN])
    const image = numberTensor('image', 'FP16', [1, 2, 1], [1, 2])
    const bytes = numberTensor('image', 'UINT8', [1, 2, 1], [1, 2])
    const boxes = numberTensor('boxes', 'FP32', [0, 4], [])
    const crop = { name: 'cropBoxes', width: 1, height: 1, fit: 'pad' }
    const box = { name: 'letterbox', width: 9, height: 9 }
    for (const [given, inputs, path, got, want] of [
      [{ name: 'compare', op: 'less' }, [half], 'value', 65_536, 'a number that FP16 has'],
      [{ name: 'padToMultiple', multipleOf: 8 }, [image], 'value', -1e5, 'a number that FP16 has'],
      [box, [image], 'fill', 65_535, 'a number that FP16 has'],
      [box, [bytes], 'fill', 0.5, 'a whole number for UINT8'],
      [crop, [image, boxes], 'fill', 65_535, 'a number that FP16 has'],
      [crop, [bytes, boxes], 'fill', 256, 'a number that UINT8 has'],
      [
        { name: 'clip' },
        [{ ...half, datatype: 'FP32', shape: [0] }],
        'max',
        1e39,
        'a number that FP32 has',
      ],
    ] as const) {
      await t.rejects(
        run(t, { ...given, [path]: got }, inputs),
        new Refused([{ path, got: String(got), want }]),
        given.name,
      )
    }
    const [isEqual] = await run(t, { name: 'compare', op: 'equal', value: 0.1 }, [half])
    t.same([...(isEqual?.data ?? [])], [1, 0, 0], '0.1 is that of the datatype')
  },
)

await t.test('a cast to BF16 keeps 8 bits, and comes back as it was', async (t) => {
  const run = await openBuiltins(t)
  const input = numberTensor('input', 'FP32', [4], [1, -2.5, 3.140625, 2 ** 100])
  const [brain] = await run(t, { name: 'cast', datatype: 'BF16' }, [input])
  if (brain === undefined) throw new Error('there is no output')
  const [back] = await run(t, { name: 'cast', datatype: 'FP32' }, [{ ...brain, name: 'input' }])
  equalTensors(t, back, input, 'all of them are BF16 numbers')
})
