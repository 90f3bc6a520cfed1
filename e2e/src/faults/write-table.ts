/** `node e2e/src/faults/write-table.ts`: writes the last reports of `npm run nightly -- faults` into docs/reliability.md. */
import { readFile, writeFile } from 'node:fs/promises'
import { ROOT } from '../serving.ts'
import { readReport, WAYS } from './show-faults.ts'
import { renderTable } from './table.ts'

const PAGE = `${ROOT}docs/reliability.md`
const END = '<!-- end -->'
let page = await readFile(PAGE, 'utf8')
for (const [way] of WAYS) {
  // oxlint-disable-next-line no-await-in-loop -- two
  const rows = await readReport(way)
  const begin = `<!-- faults: ${way} -->`
  const from = page.indexOf(begin)
  if (from < 0) throw new Error(`${PAGE} has no line ${begin}`)
  const rest = page.slice(page.indexOf(END, from))
  page = `${page.slice(0, from)}${begin}\n\n${renderTable(rows)}\n\n${rest}`
}
await writeFile(PAGE, page)
