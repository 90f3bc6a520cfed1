import t from 'tap'
import { sequenceConfig, sequenceState } from '../testing/sequence-builders.ts'
import { floats } from '../testing/step-builders.ts'
import { compileStates, SequenceStates, StateMemory } from './sequence-states.ts'

const RULES = compileStates(
  sequenceConfig({ state: [sequenceState()] }),
  new Map([['before', floats('before', [1, 1])]]),
)

await t.test('states of all sequences have one bound, and are given back', async (t) => {
  const memory = new StateMemory('m', 100)
  const [one, other] = [new SequenceStates(RULES, memory), new SequenceStates(RULES, memory)]
  t.equal(memory.bytes, 0, 'initial states are shared')
  one.take([floats('after', [1, 10]), floats('unknown', [1, 1000])])
  one.take([floats('after', [1, 15])])
  t.equal(memory.bytes, 60)
  const error = t.throws(() => other.take([floats('after', [1, 11])]))
  t.match(error, {
    reason: 'OVERLOADED',
    message: "the states of model 'm' come to 104 bytes over all sequences, want at most 100",
  })
  other.take([floats('after', [1, 10])])
  t.equal(memory.bytes, 100)
  other.take([floats('after', [1, 1])])
  one.reset()
  t.equal(memory.bytes, 4)
  t.match([...one.inputs], [{ name: 'before', shape: [1, 1] }])
  other.close()
  other.close()
  other.take([floats('after', [1, 5])])
  other.reset()
  t.equal(memory.bytes, 0)
})

await t.test('a state is a copy, with the shape that the model gave it', async (t) => {
  const states = new SequenceStates(RULES, new StateMemory('m'))
  const lent = floats('after', [1, 2])
  states.take([lent])
  lent.data.fill(7)
  const [kept] = [...states.inputs]
  t.same(kept?.shape, [1, 2])
  t.same(kept?.data, new Uint8Array(8))
})
