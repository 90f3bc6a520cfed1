// needs: nats
import * as fc from 'fast-check'
import t from 'tap'
import type { OutgoingMessage } from '../send-message.ts'
import { tensorBytes } from '../testing/endpoints.ts'
import { SMALL } from '../testing/faulty-network.ts'
import { ByteBudget } from './byte-budget.ts'
import { ByteRanges } from './byte-ranges.ts'
import { IncomingTransfers } from './incoming-transfers.ts'
import { type OutgoingTensor, OutgoingTransfers } from './outgoing-transfers.ts'
import { splitTensors, unaskedBytes } from './split-tensors.ts'

function toSend(to: string, size: number): OutgoingTensor {
  return { to, bytes: tensorBytes(size), retain: undefined, onProgress: () => {} }
}

await t.test('ranges know every byte once, in whatever order they come', async (t) => {
  const range = fc.tuple(fc.nat({ max: 60 }), fc.integer({ min: 1, max: 12 }))
  fc.assert(
    fc.property(fc.array(range), (added) => {
      const ranges = new ByteRanges()
      const known = new Set<number>()
      for (const [start, size] of added) {
        const before = known.size
        for (let i = start; i < start + size; i++) known.add(i)
        const isNew = known.size > before
        if (ranges.lacks(start, start + size) !== isNew) return false
        if (ranges.add(start, start + size) !== isNew) return false
        let gap = 0
        while (known.has(gap)) gap += 1
        if (ranges.count !== known.size || ranges.firstGap !== gap) return false
      }
      return true
    }),
  )
  const scattered = new ByteRanges()
  for (let i = 0; i < 5000; i++) scattered.add(2 * i, 2 * i + 1)
  t.ok(scattered.count < 5000, 'a hostile order does not grow without end')
})

await t.test('a budget is never exceeded, in all or by one sender', async (t) => {
  const take = fc.tuple(fc.constantFrom('a', 'b', 'c'), fc.nat({ max: 60 }))
  fc.assert(
    fc.property(fc.array(take), (takes) => {
      const budget = new ByteBudget(100, 50)
      const taken: (readonly [string, number])[] = []
      for (const [sender, bytes] of takes) {
        if (budget.take(sender, bytes)) taken.push([sender, bytes])
        const own = taken.filter(([one]) => one === sender).reduce((sum, [, n]) => sum + n, 0)
        if (own > 50 || budget.inUse > 100) return false
      }
      for (const [sender, bytes] of taken) budget.give(sender, bytes)
      return budget.inUse === 0 && budget.free === 50
    }),
  )
  t.pass()
})

await t.test('tensors ride inline as long as they fit, each and together', async (t) => {
  const opened: number[] = []
  const tensors = [3, 4, 5, 0, 2].map((size) => tensorBytes(size))
  const parts = splitTensors(tensors, { each: 4, total: 8 }, 0, ({ byteLength }) => {
    opened.push(byteLength)
    return opened.length
  })
  t.same(
    parts.map(({ kind }) => kind),
    ['inline', 'inline', 'transfer', 'inline', 'transfer'],
  )
  t.same(opened, [5, 2])
  const unasked = splitTensors([9, 5, 3].map(tensorBytes), { each: 0, total: 0 }, 12, () => 1)
  t.same(
    unasked.map((part) => part.kind === 'transfer' && part.isUnasked === true),
    [true, false, true],
    'each that fits what may go unasked',
  )
  t.equal(unaskedBytes(unasked), 12)
})

await t.test('a sender stays within its credit, and stops between two pieces', async (t) => {
  const outgoing = new OutgoingTransfers(() => ({ wholeBytes: 16, chunkBytes: 8 }))
  const progress: boolean[] = []
  const transfer = outgoing.open({
    ...toSend('b', 20),
    onProgress: (_now, isWhole) => progress.push(isWhole),
  })
  t.equal(outgoing.next(0), undefined, 'nothing without credit')
  t.notOk(outgoing.credit('c', [{ transfer, upTo: 20 }]), 'nor with credit of another')
  t.ok(outgoing.credit('b', [{ transfer, upTo: 12 }]))
  t.notOk(outgoing.credit('b', [{ transfer, upTo: 9 }]), 'credit never shrinks')
  t.match(outgoing.next(0), { to: 'b', offset: 0, total: 20, bytes: { byteLength: 8 } })
  t.match(outgoing.next(0), { offset: 8, bytes: { byteLength: 4 } })
  t.equal(outgoing.next(0), undefined)
  outgoing.credit('b', [{ transfer, upTo: 999 }])
  t.match(outgoing.next(0), { offset: 12, bytes: { byteLength: 8 } })
  t.same(progress, [false, false, true])
  outgoing.resend('c', transfer, 0)
  outgoing.resend('b', transfer, 16)
  t.match(outgoing.next(0), { offset: 16, bytes: { byteLength: 4 } })
  outgoing.resend('b', transfer, 0)
  t.equal(outgoing.next(0), undefined, 'once for each transfer')
  const cancelled = outgoing.open(toSend('b', 40))
  outgoing.credit('b', [{ transfer: cancelled, upTo: 40 }])
  outgoing.next(0)
  outgoing.drop(cancelled)
  t.equal(outgoing.next(0), undefined, 'a dropped transfer stops')
})

await t.test('small tensors go whole, and receivers take turns', async (t) => {
  const outgoing = new OutgoingTransfers(() => ({ wholeBytes: 16, chunkBytes: 8 }))
  for (const [to, size] of [
    ['a', 24],
    ['b', 16],
  ] as const) {
    const transfer = outgoing.open(toSend(to, size))
    outgoing.credit(to, [{ transfer, upTo: size }])
  }
  const sent: string[] = []
  for (let piece = outgoing.next(0); piece; piece = outgoing.next(0)) {
    sent.push(`${piece.to} ${piece.bytes.byteLength}`)
  }
  t.same(sent, ['a 8', 'b 16', 'a 8', 'a 8'])
})

await t.test('a stalled transfer is asked for once more, then given up', async (t) => {
  const said: OutgoingMessage[] = []
  const incoming = new IncomingTransfers(SMALL, (_to, message) => said.push(message))
  let stalledAt = -1
  incoming.open(0, [
    {
      from: 'a',
      call: 1,
      transfer: 7,
      size: 20,
      onArrived: () => {},
      onStalled: (now) => {
        stalledAt = now
        incoming.drop(now, 'a', 7)
      },
    },
  ])
  incoming.chunk(10, { from: 'a', transfer: 7, offset: 0, total: 20, bytes: tensorBytes(8) })
  incoming.tick(10 + SMALL.stallMs)
  t.match(said.slice(-2), [
    { type: 'credit', credits: [{ transfer: 7, upTo: 20 }] },
    { type: 'resend', transfer: 7, offset: 8 },
  ])
  incoming.tick(10 + 2 * SMALL.stallMs)
  t.equal(stalledAt, 10 + 2 * SMALL.stallMs)
  t.equal(incoming.size + incoming.outstanding, 0)
})

const announced = { from: 'a', call: 1, isUnasked: true, onStalled: () => {} } as const

await t.test('what comes unasked has memory within its bound, for a while', async (t) => {
  const incoming = new IncomingTransfers(SMALL, () => {})
  const most = Math.min(SMALL.creditBytes, SMALL.creditTotalBytes / 2)
  const chunk = (transfer: number, total: number) =>
    incoming.place({ from: 'a', transfer, offset: 0, total }, 4)
  t.ok(chunk(1, most - 8))
  t.ok(chunk(2, 8))
  t.equal(chunk(3, 1), undefined)
  t.equal(chunk(4, 0), undefined)
  t.same([incoming.size, incoming.earlySize, incoming.outstanding], [0, 4, most])
  incoming.tick(SMALL.stallMs)
  t.same([incoming.earlySize, incoming.outstanding], [0, 0])
  for (let i = 0; i < 5000; i++)
    incoming.place({ from: `s${i}`, transfer: i, offset: 0, total: 99 }, 1)
  t.equal(incoming.earlySize, 1024)
})

await t.test('what was thrown away is asked for once it is granted', async (t) => {
  const said: OutgoingMessage[] = []
  const incoming = new IncomingTransfers(SMALL, (_to, message) => said.push(message))
  const arrived: number[] = []
  const bytes = tensorBytes(8)
  const open = (transfer: number) =>
    incoming.open(0, [
      { ...announced, transfer, size: 8, onArrived: () => void arrived.push(transfer) },
    ])
  const chunk = (transfer: number): void =>
    incoming.chunk(0, { from: 'a', transfer, offset: 0, total: 8, bytes })
  incoming.throwAway('a', 1)
  chunk(1)
  t.same(open(1), [], 'its memory is there')
  t.match(said.splice(0), [{ type: 'credit' }, { type: 'resend', transfer: 1, offset: 0 }])
  chunk(1)
  for (const early of [2, 3, 4]) chunk(early)
  chunk(5)
  t.match(open(5), [{ transfer: 5, upTo: 8 }], 'it waits for the window as others do')
  t.match(said.splice(0), [{ type: 'resend', transfer: 5, offset: 0 }])
  chunk(5)
  open(4)
  t.same(arrived, [1, 5, 4])
  t.same(said, [])
})

await t.test('what is on its way while it is granted is not asked for again', async (t) => {
  const said: OutgoingMessage[] = []
  const incoming = new IncomingTransfers(SMALL, (_to, message) => said.push(message))
  const arrived: number[] = []
  const open = (transfer: number, size: number) =>
    incoming.open(0, [
      { ...announced, transfer, size, onArrived: () => void arrived.push(transfer) },
    ])
  const chunk = (transfer: number, total: number, offset = 0): void => {
    const bytes = tensorBytes(Math.min(8, total))
    incoming.chunk(0, { from: 'a', transfer, offset, total, bytes })
  }
  for (const early of [1, 2, 3]) chunk(early, 8)
  t.match(open(4, 8), [{ transfer: 4, upTo: 8 }], 'no memory is left of that for unasked ones')
  chunk(4, 8)
  t.same(arrived, [4])
  t.same(said.splice(0), [], 'its only chunk was under way')
  t.match(open(5, 32), [{ transfer: 5, upTo: 24 }])
  for (const offset of [0, 8, 16, 24]) chunk(5, 32, offset)
  t.match(
    said.splice(0),
    [{ type: 'credit', credits: [{ upTo: 32 }] }],
    'the last chunk could still come',
  )
  t.same(arrived, [4, 5])
})

await t.test('what comes a second time holds no memory', async (t) => {
  const incoming = new IncomingTransfers(SMALL, () => {})
  const bytes = tensorBytes(8)
  const chunk = (): void =>
    incoming.chunk(SMALL.stallMs, { from: 'a', transfer: 1, offset: 0, total: 8, bytes })
  let arrived = 0
  incoming.open(0, [{ ...announced, transfer: 1, size: 8, onArrived: () => void (arrived += 1) }])
  incoming.tick(SMALL.stallMs)
  chunk()
  chunk()
  t.same([arrived, incoming.outstanding], [1, 0])
})

await t.test('a transfer that may not go on sends no empty pieces', async (t) => {
  const outgoing = new OutgoingTransfers(() => ({ wholeBytes: 16, chunkBytes: 8 }))
  const transfer = outgoing.open({ ...toSend('b', 12), isUnasked: true })
  outgoing.resend('b', transfer, 0)
  t.equal(outgoing.next(0), undefined)
  outgoing.credit('b', [{ transfer, upTo: 12 }])
  t.match(outgoing.next(0), { offset: 0, bytes: { byteLength: 12 } })
})

await t.test('after a loss of what went unasked its sender keeps to credits', async (t) => {
  const outgoing = new OutgoingTransfers(() => ({ wholeBytes: 16, chunkBytes: 8 }))
  const transfer = outgoing.open({ ...toSend('b', 12), isUnasked: true })
  t.match(outgoing.next(0), { offset: 0, bytes: { byteLength: 12 } })
  outgoing.resend('b', transfer, 0)
  t.equal(outgoing.next(0), undefined)
  t.notOk(outgoing.credit('b', [{ transfer, upTo: 0 }]))
  t.ok(outgoing.credit('b', [{ transfer, upTo: 12 }]))
  t.match(outgoing.next(0), { offset: 0, bytes: { byteLength: 12 } })
})

await t.test('one credit stands for half a window', async (t) => {
  const said: OutgoingMessage[] = []
  const incoming = new IncomingTransfers(SMALL, (_to, message) => said.push(message))
  const transfer = { ...announced, isUnasked: false, transfer: 1, size: 96 }
  t.match(incoming.open(0, [{ ...transfer, onArrived: () => {} }]), [{ upTo: 24 }])
  for (let offset = 0; offset < 96; offset += 8) {
    const bytes = tensorBytes(8)
    incoming.chunk(0, { from: 'a', transfer: 1, offset, total: 96, bytes })
    t.ok(incoming.outstanding <= SMALL.creditBytes)
  }
  t.match(said, [
    { credits: [{ upTo: 40 }] },
    { credits: [{ upTo: 56 }] },
    { credits: [{ upTo: 72 }] },
    {},
    {},
  ])
})

await t.test('chunks that do not fit what was announced change nothing', async (t) => {
  const incoming = new IncomingTransfers(SMALL, () => {})
  let arrived: Uint8Array | undefined
  const bytes = tensorBytes(12)
  const expected = { from: 'a', call: 1, transfer: 1, size: 12, onStalled: () => {} }
  incoming.open(0, [{ ...expected, onArrived: (_now, got) => (arrived = got) }])
  const wrong = new Uint8Array(12).fill(255)
  const chunk = { from: 'a', transfer: 1, offset: 0, total: 12, bytes: wrong }
  incoming.chunk(0, { ...chunk, from: 'b' })
  incoming.chunk(0, { ...chunk, transfer: 2 })
  incoming.chunk(0, { ...chunk, total: 13 })
  incoming.chunk(0, { ...chunk, offset: 1 })
  t.equal(arrived, undefined)
  incoming.chunk(0, { ...chunk, offset: 4, bytes: bytes.subarray(4) })
  incoming.chunk(0, { ...chunk, bytes: bytes.subarray(0, 4) })
  t.ok(Buffer.from(bytes).equals(arrived ?? wrong))
})
