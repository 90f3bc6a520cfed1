import { setImmediate as settled } from 'node:timers/promises'
import { test } from 'tap'
import { NamespaceLanes } from './namespace-lanes.ts'

function rig(o: { readonly perNamespace: number; readonly total: number }) {
  const begun: string[] = []
  const ends = new Map<string, () => void>()
  const lanes = new NamespaceLanes<string>({
    ...o,
    work: async (item) => {
      begun.push(item)
      await new Promise<void>((resolve) => ends.set(item, resolve))
    },
  })
  const end = async (...items: readonly string[]): Promise<void> => {
    for (const item of items) ends.get(item)?.()
    await settled()
  }
  return { lanes, begun, end }
}

await test('each namespace has its turn, and none more than its share', async (t) => {
  const { lanes, begun, end } = rig({ perNamespace: 2, total: 3 })
  lanes.offer('a', ['a1', 'a2', 'a3', 'a4'])
  lanes.offer('b', ['b1', 'b2'])
  lanes.offer('c', ['c1'])
  t.same(begun, ['a1', 'a2', 'b1'])
  await end('a1')
  t.same(begun.slice(3), ['b2'])
  await end('b1')
  t.same(begun.slice(4), ['c1'])
  await end('c1')
  t.same(begun.slice(5), ['a3'])
  await end('a2', 'a3', 'a4', 'b2')
  await end('a4')
  await lanes.idle()
})

await test('what is left of a namespace holds up neither others nor their next round', async (t) => {
  const { lanes, begun, end } = rig({ perNamespace: 1, total: 2 })
  lanes.offer('mute', ['m1', 'm2'])
  lanes.offer('fine', ['f1'])
  await end('f1')
  lanes.offer('mute', ['m1', 'm2'])
  lanes.offer('fine', ['f1'])
  t.same(begun, ['m1', 'f1', 'f1'])
  let isIdle = false
  const idle = lanes.idle().then(() => (isIdle = true))
  await end('f1', 'm1')
  t.equal(isIdle, false)
  await end('m2')
  await idle
  lanes.offer('mute', [])
  await lanes.idle()
  lanes.offer('mute', ['m3'])
  t.same(begun.slice(3), ['m2', 'm3'])
})
