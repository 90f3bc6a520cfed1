/** `node e2e/src/faults/write-table.ts`: writes the last reports of `npm run nightly -- faults` into the pages. */
import { readFile, writeFile } from 'node:fs/promises'
import { ROOT } from '../serving.ts'
import { readReport, TABLES } from './show-faults.ts'
import { renderTable } from './table.ts'

const END = '<!-- end -->'
for (const { report, page, faults } of TABLES) {
  // oxlint-disable no-await-in-loop -- one after the other: two tables are on one page
  const names = new Set(faults.map(({ name }) => name))
  const rows = (await readReport(report)).filter(({ fault }) => names.has(fault))
  const text = await readFile(`${ROOT}${page}`, 'utf8')
  const begin = `<!-- faults: ${report} -->`
  const from = text.indexOf(begin)
  if (from < 0) throw new Error(`${page} has no line ${begin}`)
  const rest = text.slice(text.indexOf(END, from))
  await writeFile(
    `${ROOT}${page}`,
    `${text.slice(0, from)}${begin}\n\n${renderTable(rows)}\n\n${rest}`,
  )
  // oxlint-enable no-await-in-loop
}
