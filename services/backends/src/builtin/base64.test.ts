// needs: python
import { decodeBytesTensor, encodeBytesTensor, type NamedTensor } from '@tutti/tensor'
import t from 'tap'
import { openBuiltins } from '../testing/builtin-steps.ts'
import { createDice, times } from '../testing/dice.ts'
import { startNumpy } from '../testing/numpy-reference.ts'
import { TEST_PYTHON, WITHOUT_PYTHON } from '../testing/python-model.ts'

const bytes = (...elements: readonly Uint8Array[]): NamedTensor => {
  return {
    name: 'data',
    datatype: 'BYTES',
    shape: [elements.length],
    data: encodeBytesTensor(elements),
  }
}
const text = (value: string): Uint8Array => Buffer.from(value)
const elementsOf = (tensor?: NamedTensor): Uint8Array[] => [
  ...decodeBytesTensor(tensor?.data ?? new Uint8Array()),
]

await t.test('base64 is that of Python', { skip: WITHOUT_PYTHON }, async (t) => {
  const run = await openBuiltins(t)
  const numpy = startNumpy(t, TEST_PYTHON ?? '')
  const dice = createDice()
  for (const _ of times(20)) {
    const plain = dice.tensor('x', 'UINT8', [dice.int(0, 90)])
    const lines = dice.isTrue() ? 'encodebytes' : 'b64encode'
    const setup = `import base64\nmade = base64.${lines}(x.tobytes())`
    const [written] = await numpy("np.frombuffer(made, 'uint8')", [plain], setup)
    const code = new Uint8Array(written?.data ?? [])
    const [decoded] = await run(t, { name: 'base64', direction: 'decode' }, [bytes(code, code)])
    t.same(
      elementsOf(decoded).map((one) => [...one]),
      [[...plain.data], [...plain.data]],
    )
    if (lines === 'encodebytes') continue
    const [encoded] = await run(t, { name: 'base64', direction: 'encode' }, [bytes(plain.data)])
    t.same([...(elementsOf(encoded)[0] ?? [])], [...code])
  }
})

await t.test('bytes that are no base64 are refused, and none is left out', async (t) => {
  const run = await openBuiltins(t)
  for (const wrong of ['a', 'ab-_', 'abc', 'ab=c', 'a===', 'abcd====', 'ab\0d', 'aü==']) {
    await t.rejects(
      run(t, { name: 'base64', direction: 'decode' }, [bytes(text('abcd'), text(wrong))]),
      {
        reason: 'INVALID_REQUEST',
        message: 'input "data": bytes in element 1 that are no base64, want base64',
      },
      JSON.stringify(wrong),
    )
  }
})
