/** Renders a Markdown table with columns of equal width, as the formatter wants it. A `|` in a cell is escaped. */
export function renderTable(
  header: readonly string[],
  rows: readonly (readonly string[])[],
): string {
  const lines = [header, ...rows].map((row) => row.map((cell) => cell.replaceAll('|', '\\|')))
  const widths = header.map((_, column) =>
    // A rule has three dashes at least.
    Math.max(3, ...lines.map((line) => line[column]?.length ?? 0)),
  )
  const rule = `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`
  const [first = '', ...others] = lines.map((line) => renderRow(line, widths))
  return [first, rule, ...others].join('\n')
}

function renderRow(cells: readonly string[], widths: readonly number[]): string {
  return `| ${widths.map((width, column) => (cells[column] ?? '').padEnd(width)).join(' | ')} |`
}
