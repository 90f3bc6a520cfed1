import { Socket } from 'node:net'
import { isDeepStrictEqual } from 'node:util'
import { silentLogger } from '@tutti/chassis'
import * as fc from 'fast-check'
import t from 'tap'
import type { Placement } from '../placement.ts'
import { groupByProcess, ProcessGroup } from './process-group.ts'
import { ProcessOutput } from './process-output.ts'
import type { ForkedProcess } from './zygote.ts'

/** Processes whose end the test tells, each with so many connections. */
function scriptedForks(channels: number) {
  const forks: { readonly sockets: readonly Socket[]; end(): void }[] = []
  const fork = async (): Promise<ForkedProcess[]> => {
    const ended = Promise.withResolvers<number>()
    const sockets = Array.from({ length: channels }, () => new Socket())
    forks.push({ sockets, end: () => ended.resolve(1) })
    const output = new ProcessOutput(silentLogger, ORIGIN, () => 0)
    const process = { output, ended: ended.promise, kill: () => {}, problem: () => undefined }
    return await Promise.resolve(sockets.map((frames) => ({ ...process, frames })))
  }
  return { forks, fork }
}

const ORIGIN = { model: 'm', version: '1', instance: 'm_0' }
const turn = () => new Promise(setImmediate)

await t.test('instances start one after the other, each with its own connection', async (t) => {
  const { forks, fork } = scriptedForks(3)
  const group = new ProcessGroup(fork)
  const starts = Array.from({ length: 3 }, () => Promise.withResolvers<void>())
  const begun: Socket[] = []
  const started = starts.map(({ promise }) =>
    group.start(async ({ frames }) => {
      begun.push(frames)
      await promise
      return frames
    }),
  )
  for (const [i, start] of starts.entries()) {
    await turn()
    t.equal(begun.length, i + 1)
    start.resolve()
  }
  t.equal(forks.length, 1)
  t.same(
    (await Promise.all(started)).map((one, i) => one === forks[0]?.sockets[i]),
    [true, true, true],
  )
})

await t.test('after the end the next to start forks another process', async (t) => {
  const { forks, fork } = scriptedForks(2)
  const group = new ProcessGroup(fork)
  const take = () => group.start(({ frames }) => Promise.resolve(frames))
  t.equal(await take(), forks[0]?.sockets[0])
  forks[0]?.end()
  await turn()
  t.equal(forks[0]?.sockets[0]?.destroyed, false, 'who has it reads it to its end')
  t.equal(forks[0]?.sockets[1]?.destroyed, true, 'no instance has it')
  t.equal(await take(), forks[1]?.sockets[0])
  t.equal(await take(), forks[1]?.sockets[1])
  t.equal(forks.length, 2)
})

await t.test(
  'those that wait when one fails, or when the process ends, fail with it',
  async (t) => {
    const { forks, fork } = scriptedForks(2)
    const group = new ProcessGroup(fork)
    const starting = Promise.withResolvers<void>()
    const first = group.start(() => starting.promise)
    const second = group.start(() => Promise.resolve())
    await turn()
    forks[0]?.end()
    await turn()
    starting.reject(new Error('no'))
    await t.rejects(first, { message: 'no' })
    await t.rejects(second, { message: 'no' })
    const third = group.start(() => turn())
    const fourth = group.start(() => Promise.resolve())
    await Promise.resolve()
    forks[1]?.end()
    await third
    const reason = 'ENGINE_STOPPED'
    await t.rejects(fourth, { reason, message: 'the process that the instance shares has ended' })
  },
)

await t.test('a fork that fails is tried again', async (t) => {
  const { fork } = scriptedForks(1)
  let fails = true
  const group = new ProcessGroup(() => (fails ? Promise.reject(new Error('no fork')) : fork()))
  const both = [group.start(() => turn()), group.start(() => turn())]
  for (const one of both) await t.rejects(one, { message: 'no fork' })
  fails = false
  await group.start(() => turn())
})

const keyOf = ({ group, kind, deviceId, policy }: Placement) =>
  `${group} ${kind} ${deviceId} ${policy}`

const placement = fc.record<Placement>(
  {
    group: fc.constantFrom('a', 'b'),
    name: fc.constantFrom('x', 'y', 'z'),
    kind: fc.constantFrom('CPU', 'GPU', 'MODEL'),
    deviceId: fc.integer({ min: 0, max: 2 }),
    policy: fc.constantFrom('', 'p'),
  },
  { noNullPrototype: true },
)

await t.test('those of a group on one device are in one process, or each alone', (t) => {
  fc.assert(
    fc.property(fc.array(placement), fc.boolean(), (placements, isShared) => {
      const grouped = groupByProcess(placements, isShared, () => Promise.resolve([]))
      const arePlaced = grouped.every(({ processes, ...rest }, i) => {
        return processes instanceof ProcessGroup && isDeepStrictEqual(rest, placements[i])
      })
      const areRight = grouped.every((one, i) =>
        grouped.every((other, j) => {
          const areTogether = one.processes === other.processes
          return areTogether === (i === j || (isShared && keyOf(one) === keyOf(other)))
        }),
      )
      return grouped.length === placements.length && arePlaced && areRight
    }),
  )
  t.end()
})
