import t from 'tap'
import { RunPace } from './ort-session.ts'

const [SHORT, MIDDLE, SLOW, LONG] = [5_000, 60_000, 300_000, 600_000]

function paceAfter(...runs: readonly number[]): RunPace {
  const pace = new RunPace()
  addAll(pace, ...runs)
  return pace
}

function addAll(pace: RunPace, ...runs: readonly number[]): void {
  for (const ns of runs) pace.add({ inputBytes: 100, inputNs: 2000 }, ns)
}

const times = (count: number, ns: number): number[] => Array.from({ length: count }, () => ns)

await t.test('a model whose runs on a thread are not slow is tried here', async (t) => {
  t.notOk(paceAfter().isShort(0))
  t.notOk(paceAfter(...times(3, MIDDLE)).isShort(100))
  t.ok(paceAfter(...times(4, MIDDLE)).isShort(100))
  t.notOk(paceAfter(...times(3, MIDDLE), ...times(9, SLOW)).isShort(100))
  t.ok(paceAfter(...times(3, MIDDLE), ...times(9, SLOW), MIDDLE).isShort(100))
})

await t.test('it stays here while one of eight runs is short', async (t) => {
  const pace = paceAfter(...times(4, MIDDLE))
  for (let i = 0; i < 10; i += 1) addAll(pace, ...times(7, MIDDLE), SHORT)
  t.ok(pace.isShort(100))
  addAll(pace, ...times(7, MIDDLE))
  t.ok(pace.isShort(100))
  addAll(pace, MIDDLE)
  t.notOk(pace.isShort(100))
  addAll(pace, ...times(31, MIDDLE))
  t.notOk(pace.isShort(100), 'the next trial comes later')
  addAll(pace, MIDDLE)
  t.ok(pace.isShort(100))
})

await t.test('where all is slow, runs are short by what their inputs took', async (t) => {
  const pace = new RunPace()
  for (let i = 0; i < 100; i += 1) pace.add({ inputBytes: 100, inputNs: 40_000 }, 70_000)
  t.ok(pace.isShort(100))
})

await t.test('the first long run sends it to a thread', async (t) => {
  const pace = paceAfter(...times(20, SHORT), LONG)
  t.notOk(pace.isShort(0))
  addAll(pace, ...times(4, SHORT))
  t.ok(pace.isShort(100))
})

await t.test('nothing is known of runs with larger inputs', async (t) => {
  const pace = paceAfter(...times(4, SHORT))
  t.ok(pace.isShort(200))
  t.notOk(pace.isShort(201))
  pace.add({ inputBytes: 200, inputNs: 2000 }, SHORT)
  t.ok(pace.isShort(400))
  pace.add({ inputBytes: 400, inputNs: 2000 }, LONG)
  addAll(pace, ...times(4, SHORT))
  t.notOk(pace.isShort(400), 'what was short before does not count any more')
})

await t.test('short runs are not worth to be ended', async (t) => {
  t.ok(paceAfter().mayBeLong)
  t.notOk(paceAfter(LONG).mayBeLong)
  t.ok(paceAfter(2_000_000).mayBeLong)
})
