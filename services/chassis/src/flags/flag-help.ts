import { renderTable } from '../text/table.ts'
import { type FlagSpec, type FlagTable, withDashes } from './flag-spec.ts'

/** A flag as documentation shows it, all texts. */
export interface FlagRow {
  /** Name with its dashes, followed by its aliases. */
  readonly name: string
  readonly type: string
  readonly default: string
  readonly unit: string
  readonly description: string
}

/** Describes the flags of a table for documentation, in the table's order. */
export function describeFlags(table: FlagTable): readonly FlagRow[] {
  return Object.entries(table).map(([name, flag]) => ({
    name: [name, ...(flag.aliases ?? [])].map(withDashes).join(', '),
    type: describeType(flag),
    default: flag.default === undefined || flag.default === '' ? '-' : String(flag.default),
    unit: flag.unit ?? '',
    description: flag.description,
  }))
}

/** Describes which values a flag takes: `int, 0 to 65535`, `string, repeatable`. */
function describeType(flag: FlagSpec): string {
  if (flag.type === 'bool') return 'boolean'
  if (flag.type === 'enum') return flag.values.join(', ')
  if (flag.type === 'string') return flag.repeatable ? 'string, repeatable' : 'string'
  const { min, max } = flag
  if (min === undefined) return max === undefined ? 'int' : `int, at most ${max}`
  return max === undefined ? `int, at least ${min}` : `int, ${min} to ${max}`
}

/** Renders the text of `--help`: the usage, then two lines for each flag. The text ends with a line end. */
export function renderHelp(o: { readonly usage: string; readonly flags: FlagTable }): string {
  const blocks = describeFlags(o.flags).map((row) => {
    const unit = row.unit === '' ? '' : ` ${row.unit}`
    const preset = row.default === '-' ? '' : `, default ${row.default}${unit}`
    const measure = row.default === '-' && unit !== '' ? `, in${unit}` : ''
    return `  ${row.name}  (${row.type}${measure}${preset})\n      ${row.description}\n`
  })
  return `usage: ${o.usage}\n\n${blocks.join('')}  --help, -h\n      prints this text\n`
}

/** Renders the flags as a Markdown table for a README. A test holds the README equal to the table. */
export function renderFlagTable(table: FlagTable): string {
  const rows = describeFlags(table).map(({ name, type, default: preset, unit, description }) => {
    return [`\`${name}\``, type, preset, unit, description]
  })
  return renderTable(['flag', 'value', 'default', 'unit', 'meaning'], rows)
}
