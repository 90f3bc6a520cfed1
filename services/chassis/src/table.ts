/** Renders a Markdown table, one line a row, without padding. A `|` in a cell is escaped. */
export function renderTable(
  header: readonly string[],
  rows: readonly (readonly string[])[],
): string {
  const rule = `|${header.map(() => '---').join('|')}|`
  return [renderRow(header), rule, ...rows.map(renderRow)].join('\n')
}

function renderRow(cells: readonly string[]): string {
  const texts = cells.map((cell) => (cell === '' ? ' ' : ` ${cell.replaceAll('|', '\\|')} `))
  return `|${texts.join('|')}|`
}
