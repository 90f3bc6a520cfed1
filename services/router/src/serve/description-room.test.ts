import t from 'tap'
import { DescriptionRoom } from './description-room.ts'

await t.test('descriptions are bounded together, and what goes makes room', async (t) => {
  const room = new DescriptionRoom(20)
  room.take('a', 'x'.repeat(8))
  room.take('b', 'x'.repeat(8))
  t.throws(() => room.take('c', 'x'), {
    reason: 'OVERLOADED',
    message: 'description of 3 bytes beside 20 of other steps, want at most 20 in all',
    details: { replica: 'c' },
  })
  t.throws(() => room.take('a', 'x'.repeat(9)), {
    reason: 'OVERLOADED',
    message: /want at most 20/,
  })
  room.take('a', 'x')
  room.take('c', 'x'.repeat(5))
  room.leave('b')
  room.leave('nobody')
  room.take('d', 'x'.repeat(8))
  t.throws(() => room.take('e', null), { reason: 'OVERLOADED', message: /want at most 20/ })
})
