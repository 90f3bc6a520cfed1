import * as fc from 'fast-check'
import t from 'tap'
import { TensorMemory } from './tensor-memory.ts'

await t.test('held bytes are counted until the last reference is released', async (t) => {
  const memory = new TensorMemory('router-1')
  const bytes = new Uint8Array(10)
  const ref = memory.hold(bytes)
  t.equal(ref.owner, 'router-1')
  t.equal(ref.bytes, bytes, 'viewed, not copied')
  t.equal(memory.get(ref.id), ref)
  memory.retain(ref.id)
  memory.release(ref.id)
  t.equal(memory.bytesInUse, 10)
  t.equal(memory.count, 1)
  memory.release(ref.id)
  t.equal(memory.bytesInUse, 0)
  t.equal(memory.count, 0)
})

await t.test('ids are never used again', async (t) => {
  const memory = new TensorMemory('o')
  const first = memory.hold(new Uint8Array(1))
  memory.release(first.id)
  t.not(memory.hold(new Uint8Array(1)).id, first.id)
})

await t.test('to use what is not held is a bug', async (t) => {
  const memory = new TensorMemory('o')
  const { id } = memory.hold(new Uint8Array(1))
  memory.release(id)
  const bug = { reason: 'INTERNAL', message: `bug: tensor ${id} of o is not held` }
  t.throws(() => memory.get(id), bug)
  t.throws(() => memory.retain(id), bug)
  t.throws(() => memory.release(id), bug)
})

/** What a sequence of commands leaves: references and size by position of the hold. */
interface Held {
  readonly id: number
  readonly size: number
  references: number
}

await t.test('after any sequence of commands the counts are those of a plain model', async (t) => {
  const command = fc.record({
    verb: fc.constantFrom('hold', 'retain', 'release'),
    pick: fc.nat(50),
    size: fc.nat(100),
  })
  fc.assert(
    fc.property(fc.array(command, { maxLength: 60 }), (commands) => {
      const memory = new TensorMemory('o')
      let held: Held[] = []
      for (const { verb, pick, size } of commands) {
        const target = held[pick % Math.max(1, held.length)]
        if (verb === 'hold') {
          held.push({ id: memory.hold(new Uint8Array(size)).id, size, references: 1 })
        } else if (target !== undefined) {
          target.references += verb === 'retain' ? 1 : -1
          if (verb === 'retain') memory.retain(target.id)
          else memory.release(target.id)
          held = held.filter((one) => one.references > 0)
        }
      }
      const total = held.reduce((sum, one) => sum + one.size, 0)
      return memory.count === held.length && memory.bytesInUse === total
    }),
  )
  t.pass('held for every sequence tried')
})
