/** @param {string[][]} rows - cells, the first row the headings. @returns the Markdown table, aligned. */
export function renderTable(rows) {
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)))
  const line = (row) => `| ${row.map((cell, i) => cell.padEnd(widths[i])).join(' | ')} |`
  const rule = `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`
  const [head, ...body] = rows.map(line)
  return [head, rule, ...body].join('\n')
}
