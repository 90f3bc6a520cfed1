import { test } from 'tap'
import { Turns } from './turns.ts'

const { signal } = new AbortController()

function rig(o: { readonly most?: number; readonly mostWaiting?: number } = {}) {
  const turns = new Turns({ most: 2, mostWaiting: 100, ...o })
  const begun: string[] = []
  const take = async (group: string, member: string, name = member) => {
    const end = await turns.take({ group, member, signal })
    begun.push(name)
    return end ?? (() => {})
  }
  return { turns, begun, take }
}

await test('turns are first come, first served; one of a member that is busy is passed over', async (t) => {
  const { turns, begun, take } = rig()
  const [endMute, endSlow] = await Promise.all([take('a', 'mute'), take('a', 'slow')])
  const others = [take('a', 'mute', 'again'), take('a', 'one'), take('a', 'two')]
  await take('b', 'mute', 'of another group')
  t.same(begun, ['mute', 'slow', 'of another group'])
  endSlow()
  const end = await others[1]
  t.same(begun.slice(3), ['one'])
  end?.()
  await others[2]
  t.same(begun.slice(4), ['two'])
  endMute()
  await others[0]
  t.same(begun.slice(5), ['again'])
  t.equal(turns.groups, 2)
})

await test('who waits no longer is gone at once, and takes no turn', async (t) => {
  const { turns, take } = rig({ most: 1 })
  const end = await take('a', 'slow')
  const asking = new AbortController()
  const waiting = turns.take({ group: 'a', member: 'one', signal: asking.signal })
  const behind = take('a', 'two')
  asking.abort(new Error('enough'))
  await t.rejects(waiting, { message: 'enough' })
  await t.rejects(turns.take({ group: 'a', member: 'x', signal: asking.signal }), {
    message: 'enough',
  })
  end()
  const endBehind = await behind
  endBehind()
  t.equal(turns.groups, 0, 'nothing is kept')
})

await test('no more wait than may', async (t) => {
  const { turns, begun, take } = rig({ most: 1, mostWaiting: 1 })
  const end = await take('a', 'slow')
  const waiting = take('a', 'one')
  t.equal(await turns.take({ group: 'a', member: 'two', signal }), undefined)
  end()
  const endOne = await waiting
  endOne()
  t.same(begun, ['slow', 'one'])
  t.equal(turns.groups, 0)
})
