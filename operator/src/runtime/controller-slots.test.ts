import t from 'tap'
import { controllerRig } from '../testing/controller-rig.ts'
import { settle } from '../testing/settle.ts'
import { TerminalError } from './terminal-error.ts'

await t.test('a number of keys at once, one key never twice', async (t) => {
  const busy = new Set<string>()
  let most = 0
  const waiting: (() => void)[] = []
  const { controller, add } = controllerRig({
    slots: 3,
    reconcile: async (_context, key) => {
      t.notOk(busy.has(key))
      busy.add(key)
      most = Math.max(most, busy.size)
      await new Promise<void>((resolve) => waiting.push(resolve))
      busy.delete(key)
      return {}
    },
  })
  controller.start()
  for (let at = 0; at < 10; at++) add(`k${at % 5}`)
  await settle()
  add('k0')
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    next()
    await settle()
  }
  t.equal(most, 3)
  t.equal(controller.inFlight, 0)
})

await t.test(
  'a reconcile that takes too long is aborted; one that hangs loses its slot, not its key',
  async (t) => {
    const ran: string[] = []
    const { controller, clock, add, count } = controllerRig({
      slots: 1,
      timeoutMs: 1000,
      reconcile: async ({ signal }, key) => {
        ran.push(key)
        if (key === 'late' && ran.length === 1) {
          await new Promise((_resolve, reject) => {
            signal.addEventListener('abort', () => reject(signal.reason), { once: true })
          })
        }
        if (key === 'hangs') await new Promise<never>(() => {})
        return {}
      },
    })
    controller.start()
    add('late')
    await settle()
    clock.advance(1000)
    await settle()
    t.equal(await count('reconcile_timeouts_total'), 1)
    add('hangs')
    add('other')
    await settle()
    clock.advance(10_999)
    await settle()
    t.notOk(ran.includes('other'))
    clock.advance(1)
    await settle()
    t.ok(ran.includes('other'))
    add('hangs')
    await settle()
    t.equal(ran.filter((key) => key === 'hangs').length, 1)
    t.equal(controller.inFlight, 1)
  },
)

await t.test(
  'a reconcile that waits without a slot holds up no other group, and its own only in number',
  async (t) => {
    const ran: string[] = []
    const answers: (() => void)[] = []
    const working: (() => void)[] = []
    const { controller, add, count } = controllerRig({
      slots: 2,
      groupOf: (key) => key.slice(0, key.indexOf('/')),
      reconcile: async ({ withoutSlot }, key) => {
        ran.push(key)
        if (key.startsWith('mute/'))
          await withoutSlot(() => new Promise<void>((end) => answers.push(end)))
        if (key.startsWith('busy/')) await new Promise<void>((end) => working.push(end))
        ran.push(`${key} ended`)
        return {}
      },
    })
    controller.start()
    for (const key of ['mute/1', 'mute/2', 'mute/3', 'fine/1', 'fine/2']) add(key)
    await settle()
    const [fine1, fine2] = ['fine/1', 'fine/2'].map((key) => [key, `${key} ended`])
    t.same(ran.splice(0), ['mute/1', ...(fine1 ?? []), 'mute/2', ...(fine2 ?? [])])
    t.equal(controller.inFlight, 2)
    for (const key of ['busy/1', 'busy/2']) add(key)
    await settle()
    add('fine/3')
    await settle()
    t.same(ran.splice(0), ['busy/1', 'busy/2'])
    answers.shift()?.()
    await settle()
    t.same(ran, [], 'both slots are taken')
    working.shift()?.()
    await settle()
    const [first, second, ...others] = ran.splice(0)
    t.same([first, second], ['busy/1 ended', 'mute/1 ended'], 'who comes back goes first')
    t.same(others, ['mute/3', 'fine/3', 'fine/3 ended'])
    for (const end of [...answers, ...working]) end()
    await settle()
    t.same(ran, ['busy/2 ended', 'mute/2 ended', 'mute/3 ended'])
    t.equal(await count('active_workers'), 0)
    t.equal(controller.inFlight, 0)
  },
)

await t.test(
  'groups that wait without slots leave slots to others, and take turns beyond that',
  async (t) => {
    const ran: string[] = []
    const answers: (() => void)[] = []
    const { controller, add } = controllerRig({
      groupOf: (key) => key.slice(0, key.indexOf('/')),
      reconcile: async ({ withoutSlot }, key) => {
        ran.push(key)
        if (key.startsWith('mute'))
          await withoutSlot(() => new Promise<void>((end) => answers.push(end)))
        return {}
      },
    })
    controller.start()
    const addMute = (group: number) => {
      for (let at = 0; at < 20; at++) add(`mute${group}/${at}`)
    }
    for (let group = 0; group < 127; group++) addMute(group)
    await settle()
    t.equal(controller.inFlight, 127 * 8)
    add('fine/1')
    await settle()
    t.same(ran.splice(0).slice(-1), ['fine/1'])
    addMute(127)
    await settle()
    add('fine/2')
    await settle()
    t.equal(controller.inFlight, 1024)
    t.equal(ran.splice(0).length, 8)
    for (const end of answers.splice(0)) end()
    await settle()
    t.ok(ran.includes('fine/2'))
    t.equal(controller.inFlight, 1024)
  },
)

await t.test('a reconcile that waits for two things at once lends one slot', async (t) => {
  const ran: string[] = []
  const { controller, add } = controllerRig({
    slots: 1,
    groupOf: (key) => key,
    reconcile: async ({ withoutSlot }, key) => {
      await Promise.all([withoutSlot(async () => {}), withoutSlot(async () => {})])
      ran.push(key)
      return {}
    },
  })
  controller.start()
  for (const key of ['a', 'b', 'c']) add(key)
  await settle()
  t.same(ran.toSorted(), ['a', 'b', 'c'])
})

await t.test('what fails without a slot fails its reconcile', async (t) => {
  const { controller, add, total } = controllerRig({
    slots: 1,
    reconcile: async ({ withoutSlot }) => {
      await withoutSlot(() => Promise.reject(new TerminalError('away')))
      return {}
    },
  })
  controller.start()
  add('ns/a')
  add('ns/b')
  await settle()
  t.equal(await total('error'), 2)
})

await t.test(
  'a reconcile that hangs without a slot loses its slot once, and its place in its group',
  async (t) => {
    const ran: string[] = []
    const answers: (() => void)[] = []
    const { controller, clock, add } = controllerRig({
      slots: 1,
      timeoutMs: 1000,
      groupOf: () => 'one',
      reconcile: async ({ withoutSlot }, key) => {
        ran.push(key)
        if (key === 'mute') await withoutSlot(() => new Promise<void>((end) => answers.push(end)))
        ran.push(`${key} ended`)
        return {}
      },
    })
    controller.start()
    add('mute')
    add('other')
    await settle()
    t.same(ran, ['mute'], 'its group is at its limit')
    clock.advance(11_000)
    await settle()
    t.same(ran, ['mute', 'other', 'other ended'])
    answers.shift()?.()
    await settle()
    for (const key of ['x', 'y']) add(key)
    await settle()
    t.same(ran.slice(3), ['mute ended', 'x', 'x ended', 'y', 'y ended'])
    t.equal(controller.inFlight, 0)
  },
)
