// needs: nats
import { readFile } from 'node:fs/promises'
import t from 'tap'
import { ROOT } from '../serving.ts'
import type { FaultRow } from './run-fault.ts'
import { TABLES } from './show-faults.ts'
import { renderTable } from './table.ts'

const ROW: FaultRow = {
  fault: 'step hung',
  way: 'processes',
  heldMs: 6000,
  outcomes: { right: 90, 'UNAVAILABLE STEP_LOST': 4, 'INTERNAL ENGINE_STOPPED': 6 },
  failingMs: 2950,
  longestMs: 3010,
  withinMs: 30_000,
  recoveryMs: 120,
  lost: 0,
  duplicated: 0,
}

await t.test('a row says what clients got, for how long, and what was lost', async (t) => {
  const [, , row, other] = renderTable([
    ROW,
    { ...ROW, outcomes: { right: 7 }, failingMs: 0 },
  ]).split('\n')
  t.equal(
    row,
    '| step hung | 6 `INTERNAL ENGINE_STOPPED`, 4 `STEP_LOST` of 100 | 3.0 s | 3.0 s (30 s) | 0.1 s | 0 | 0 |',
  )
  t.match(other, '| nothing else (7 asked) | - |')
})

await t.test('the pages have a row for every fault, and for no other', async (t) => {
  for (const { report, page, faults } of TABLES) {
    const text = await readFile(`${ROOT}${page}`, 'utf8')
    const [, rest = ''] = text.split(`<!-- faults: ${report} -->`)
    const [table = ''] = rest.split('<!-- end -->')
    const rows = table
      .split('\n')
      .filter((line) => line.startsWith('|'))
      .slice(2)
    const cells = rows.map((row) => row.split('|').map((cell) => cell.trim()))
    t.same(
      cells.map(([, name]) => name),
      faults.map(({ name }) => name),
      report,
    )
    for (const [, name, , , , , lost, duplicated] of cells)
      t.same([lost, duplicated], ['0', '0'], String(name))
  }
})
