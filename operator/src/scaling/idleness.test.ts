import t from 'tap'
import { Idleness } from './idleness.ts'

const model = { key: 'a/m', uid: 'u', pods: [{ name: 'p' }, { name: 'q' }] }
const load = (requests: number | undefined, inFlight = 0, queued = 0) => ({
  inFlight,
  queued,
  slots: 1,
  requests,
})

await t.test('a request between two looks is use, as is one that is in flight or waits', (t) => {
  const idleness = new Idleness()
  t.equal(idleness.look(model, [load(5), load(0)], 1000), 0, 'nothing is known from before')
  t.equal(idleness.look(model, [load(5), load(0)], 3000), 2000)
  t.equal(idleness.look(model, [load(5), load(1)], 4000), 0)
  t.equal(idleness.look(model, [load(5), load(1)], 6000), 2000)
  t.equal(idleness.look(model, [load(5, 1), load(1)], 7000), 0)
  t.equal(idleness.look(model, [load(5, 0, 1), load(1)], 8000), 0)
  t.equal(idleness.look(model, [load(5), load(1)], 9000), 1000)
  t.end()
})

await t.test('what is not known counts as use', (t) => {
  const idle = [load(5), load(0)]
  const others = { ...model, pods: [{ name: 'p' }, { name: 'r' }] }
  for (const [seen, loads, what] of [
    [model, [load(5), undefined], 'a pod that does not answer'],
    [model, [load(5), load(undefined)], 'a pod that does not count'],
    [others, idle, 'another pod'],
    [{ ...model, uid: 'v' }, idle, 'another Model of the name'],
    [{ ...model, pods: [] }, [], 'no pods'],
  ] as const) {
    const idleness = new Idleness()
    idleness.look(model, idle, 0)
    t.equal(idleness.look(model, idle, 1000), 1000)
    t.equal(idleness.look(seen, loads, 2000), 0, what)
    t.equal(idleness.look(model, idle, 3000), 0, `${what}, and the look after it`)
    idleness.forget(model.key)
    t.equal(idleness.look(model, idle, 9000), 0)
  }
  t.end()
})
