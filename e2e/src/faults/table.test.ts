// needs: nats
import { readFile } from 'node:fs/promises'
import t from 'tap'
import { ROOT } from '../serving.ts'
import { FAULTS } from './catalogue.ts'
import type { FaultRow } from './run-fault.ts'
import { WAYS } from './show-faults.ts'
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

await t.test('docs/reliability.md has a row for every fault, and for no other', async (t) => {
  const page = await readFile(`${ROOT}docs/reliability.md`, 'utf8')
  for (const [way] of WAYS) {
    const [, rest = ''] = page.split(`<!-- faults: ${way} -->`)
    const [table = ''] = rest.split('<!-- end -->')
    const rows = table
      .split('\n')
      .filter((line) => line.startsWith('|'))
      .slice(2)
    const cells = rows.map((row) => row.split('|').map((cell) => cell.trim()))
    const faults = FAULTS.filter(({ ways }) => ways.includes(way)).map(({ name }) => name)
    t.same(
      cells.map(([, name]) => name),
      faults,
      way,
    )
    for (const [, name, , , , , lost, duplicated] of cells)
      t.same([lost, duplicated], ['0', '0'], String(name))
  }
})
